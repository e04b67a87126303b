"""A headless Chromium, and what went on in its pages."""

import shutil
from contextlib import contextmanager

import pytest

FLAGS = (
    "--no-sandbox",  # Chromium refuses to run as root with one
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def chromium():
    """The browser of the system; tests are skipped, with the reason, where there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no Chromium on this machine; `make browser` installs Debian's")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """A page opened from disk without a network, and everything it asked for or complained of."""

    def __init__(self, browser, path, width=1280, height=900, scheme="light", draw=True):
        self.context = browser.new_context(
            offline=True, color_scheme=scheme, viewport={"width": width, "height": height}
        )
        self.page = self.context.new_page()
        self.requests, self.complaints = [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on(
            "console",
            lambda message: (
                self.complaints.append(message.text)
                if message.type in ("error", "warning")
                else None
            ),
        )
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(f"dialog {dialog.message}"))
        self.page.goto(path.as_uri())
        if draw:
            self.draw_all()

    def draw_all(self):
        """Figures are drawn when they come near the window."""
        plots = self.page.locator(".plot")
        for index in range(plots.count()):
            plots.nth(index).scroll_into_view_if_needed()
            self.page.wait_for_function(
                "index => document.querySelectorAll('.plot')[index].querySelector('.main-svg')",
                arg=index,
            )
        self.page.evaluate("scrollTo(0, 0)")

    def curves(self, figure, learner=None):
        """The points of every line drawn in a figure, by the learner's number."""
        return self.page.evaluate(
            """([figure, learner]) => {
                const plot = document.getElementById(figure);
                const traces = plot._fullData.filter((trace) => trace.visible === true
                    && trace.meta.learner !== undefined && !trace.meta.band
                    && (learner === null || trace.meta.learner === learner));
                return traces.map((trace) => {
                    const drawn = plot.querySelector(`.trace${trace.uid} path.js-line, ` +
                        `.trace${trace.uid} path.point`);
                    return drawn ? drawn.getAttribute("d").split(/[LMHVC]/).length - 1 : 0;
                });
            }""",
            [figure, learner],
        )

    def close(self):
        self.context.close()
