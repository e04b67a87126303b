"""The report in a real browser: drawn, offline, switchable, light and dark, on a phone."""

import pytest
from browser import Visit, chromium
from fabricated import fabricate, facts_of_ring
from test_write import SCRIPT, hostile_results

from fsmdp.report import write_report

CURVES = ("regret", "regret-log", "values", "intervals", "effort")
PHONE = {"width": 375, "height": 760}


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where screenshots end up, beside the reports they are of."""
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def report(folder):
    models = {
        "ring-6": facts_of_ring(),
        "ring-30": facts_of_ring(30, known=False, text="sysadmin:ring:30"),
    }
    return write_report(fabricate(models), folder / "plain", figures=False).path


@pytest.fixture(scope="module")
def hostile(folder):
    return write_report(hostile_results(), folder / "hostile", figures=False).path


@pytest.fixture
def visit(browser):
    visits = []

    def open_page(*arguments, **options):
        visits.append(Visit(browser, *arguments, **options))
        return visits[-1]

    yield open_page
    for one in visits:
        one.close()


@pytest.fixture(scope="module")
def desk(browser, report):
    """One visit for all tests that leave the page as they found it."""
    seen = Visit(browser, report)
    yield seen
    seen.close()


@pytest.fixture(scope="module")
def phone(browser, report):
    seen = Visit(browser, report, **PHONE)
    yield seen
    seen.close()


def luminance(color):
    red, green, blue = (int(part) for part in color.strip("rgba()").split(",")[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_every_curve_is_drawn_without_a_request_or_a_complaint(desk, folder):
    seen = desk
    for name in CURVES:
        points = seen.curves(f"figure-0-{name}")
        assert points, name
        # A straight line, such as a constant or a fit, is drawn with two points.
        assert min(points) >= 2, (name, points)
        assert max(points) > 20 or name == "effort", (name, points)
    assert seen.curves("figure-1-regret")
    assert [url for url in seen.requests if not url.startswith(("file:", "data:"))] == []
    assert seen.complaints == []
    seen.page.screenshot(path=folder / "light.png", full_page=True)


def test_one_switch_hides_a_learner_in_every_figure_and_shows_it_again(desk):
    seen = desk
    figures = [f"figure-{model}-{name}" for model in (0, 1) for name in (*CURVES, "finals")]
    before = {figure: len(seen.curves(figure, 0)) for figure in figures}
    others = {figure: len(seen.curves(figure, 1)) for figure in figures}
    assert all(before.values())
    chip = seen.page.locator(".chip").nth(0)
    chip.click()
    assert chip.get_attribute("aria-pressed") == "false"
    assert {figure: len(seen.curves(figure, 0)) for figure in figures} == dict.fromkeys(figures, 0)
    assert {figure: len(seen.curves(figure, 1)) for figure in figures} == others
    chip.click()
    assert {figure: len(seen.curves(figure, 0)) for figure in figures} == before


def test_a_legend_hides_a_learner_in_its_own_figure_only(desk):
    seen = desk
    entry = seen.page.locator("figure:has(#figure-0-regret) .entry[data-learner='1']")
    entry.click()
    assert entry.get_attribute("aria-pressed") == "false"
    assert seen.curves("figure-0-regret", 1) == []
    assert seen.curves("figure-0-regret-log", 1)
    entry.click()
    assert seen.curves("figure-0-regret", 1)


def test_a_legend_brings_back_what_the_switch_hid(desk):
    seen = desk
    seen.page.locator(".chip").nth(1).click()
    seen.page.locator("figure:has(#figure-0-regret) .entry[data-learner='1']").click()
    assert seen.curves("figure-0-regret", 1)
    assert seen.page.locator(".chip").nth(1).get_attribute("aria-pressed") == "true"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_and_figures_follow_the_colour_scheme_and_the_button(visit, report, folder, scheme):
    seen = visit(report, scheme=scheme)

    def colors():
        return seen.page.evaluate(
            """() => [
                getComputedStyle(document.body).backgroundColor,
                document.getElementById("figure-0-regret")._fullLayout.font.color,
                document.getElementById("figure-0-regret")._fullData.find(
                    (trace) => trace.meta.learner === 0 && !trace.meta.band).line.color,
            ]"""
        )

    page, text, curve = colors()
    assert (luminance(page) > luminance(text)) == (scheme == "light")
    assert abs(luminance(page) - luminance(curve)) > 60
    seen.page.screenshot(path=folder / f"{scheme}-first.png")
    seen.page.locator("#theme").click()
    page, text, other_curve = colors()
    assert (luminance(page) > luminance(text)) == (scheme == "dark")
    assert other_curve != curve
    seen.page.screenshot(path=folder / f"{scheme}-switched.png", full_page=True)


def test_a_phone_shows_everything_without_scrolling_sideways(phone, folder):
    seen = phone
    widest = seen.page.evaluate(
        """() => Math.max(document.documentElement.scrollWidth, ...Array.from(
            document.querySelectorAll("h1, h2, h3, p, table, figure, .plot .main-svg, .entry, dl"),
            (element) => element.getBoundingClientRect().right))"""
    )
    assert widest <= PHONE["width"]
    assert all(seen.curves(f"figure-0-{name}") for name in CURVES)
    seen.page.screenshot(path=folder / "phone.png", full_page=True)


TEXTS = (
    ".xtick text, .ytick text, .y2tick text, .annotation-text, .g-xtitle text, "
    ".xtitle, .textpoint text"
)


@pytest.mark.parametrize("screen", ["desk", "phone"])
def test_texts_of_a_figure_do_not_overlap(request, screen):
    seen = request.getfixturevalue(screen)
    counted, overlapping = seen.page.evaluate(
        """(selector) => {
            const found = [];
            let counted = 0;
            for (const plot of document.querySelectorAll(".plot")) {
                const texts = Array.from(plot.querySelectorAll(selector))
                    .map((text) => [text.textContent, text.getBoundingClientRect()])
                    .filter(([, box]) => box.width > 0);
                counted += texts.length;
                texts.forEach(([name, a], index) => {
                    for (const [other, b] of texts.slice(index + 1)) {
                        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
                        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
                        if (across > 1 && down > 2) found.push([plot.id, name, other]);
                    }
                });
            }
            return [counted, found];
        }""",
        TEXTS,
    )
    assert counted > 150
    assert overlapping == []


def test_hostile_names_are_shown_and_not_run(visit, hostile, folder):
    seen = visit(hostile)
    assert seen.complaints == []
    assert seen.page.locator("h1").inner_text() == SCRIPT
    assert SCRIPT in seen.page.locator(".chip").nth(0).inner_text()
    ticks = seen.page.locator("#figure-0-finals .ytick text").all_text_contents()
    assert any(tick.startswith("<script>") for tick in ticks)
    names = seen.page.locator("#figure-0-network text").all_text_contents()
    assert any(name.startswith("<script>") for name in names)
    assert seen.page.locator("main script, .plot script, .bar script").count() == 0
    seen.page.screenshot(path=folder / "hostile.png", full_page=True)


def test_a_script_that_slipped_in_would_not_run(visit, report, folder):
    path = folder / "injected.html"
    text = report.read_text()
    path.write_text(text.replace("<main>", "<script>window.injected = 1</script><main>"))
    seen = visit(path, draw=False)
    assert seen.page.evaluate("window.injected") is None
    assert any("Content Security Policy" in complaint for complaint in seen.complaints)
