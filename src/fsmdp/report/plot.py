"""Pictures from Python, on Matplotlib axes: histories, plans, models, discoveries, and more."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from fsmdp.bounds.plan import Plan
from fsmdp.discovery.discover import Discovery
from fsmdp.elimination.order import best_order
from fsmdp.errors import ModelError, PlanningError
from fsmdp.experiments.store import read_results
from fsmdp.foundation.checks import plural, show, show_names
from fsmdp.learning.run import History
from fsmdp.model.basis import Basis
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats
from fsmdp.model.variables import Scope, Variable
from fsmdp.report.charts import (
    BAND_OPACITY,
    COLORS,
    MOST_RANKED,
    Line,
    Panel,
    Role,
    learner_styles,
    name_sides,
    place,
    printable,
)
from fsmdp.report.curves import half_widths, moving_mean, smoothing_window, thinned, trials_of_model
from fsmdp.report.print_figures import INK, MUTED, SETTINGS, WIDTH, draw_line, draw_names, node_size
from fsmdp.simulation.rollout import record

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fsmdp.policies.resolve import Policy
    from fsmdp.simulation.simulate import Record


__all__ = ["compare", "discovery", "history", "model", "plan", "trajectories"]


def __dir__() -> list[str]:
    return __all__


def checked(given: object, kind: type) -> None:
    """Refuse what cannot be drawn."""
    if not isinstance(given, kind):
        raise ModelError(f"plot: expected a {kind.__name__}, found {show(given)}.")


@contextmanager
def axes_for(given: Any, panels: int, height: float = 2.6) -> Iterator[list[Axes]]:
    """One axes for each panel, within the style: those given, or those of a new figure.

    A new figure is pyplot's, so that notebooks and `pyplot.show` find it.
    """
    import matplotlib
    from matplotlib.axes import Axes

    with matplotlib.rc_context({name: SETTINGS[name] for name in SETTINGS if name != SALT}):
        if given is None:
            from matplotlib import pyplot

            size = (WIDTH, 0.8 + height * panels)
            grid = pyplot.subplots(panels, 1, squeeze=False, figsize=size, layout="constrained")[1]
            given = grid[:, 0]
        found = [given] if isinstance(given, Axes) else list(np.ravel(np.asarray(given, object)))
        if len(found) != panels or not all(isinstance(one, Axes) for one in found):
            wanted = "a Matplotlib axes" if panels == 1 else f"{panels} Matplotlib axes"
            raise ModelError(
                f"ax: expected {wanted}, found {show(given)}; leave it out for a new one."
            )
        yield found


@contextmanager
def square_for(given: Any) -> Iterator[Axes]:
    """One axes for a network: no axis, and room for names around the unit square."""
    with axes_for(given, 1, 4.8) as (axes,):
        axes.set_axis_off()
        axes.set_aspect("equal")
        axes.set_xlim(-0.15, 1.15)
        axes.set_ylim(-0.15, 1.15)
        yield axes


SALT = "svg.hashsalt"
"""Concerns files, which are the caller's to write."""


def handed_back(axes: Sequence[Axes]) -> Any:
    """A single axes as itself, several as an array, as pyplot does."""
    return axes[0] if len(axes) == 1 else np.array(axes, dtype=object)


PANELS = ("returns", "regret")

LONGEST_LINE, ROOM_FOR_HANDLE = 88, 8
"""Letters that a line of the legend holds below an axes of the usual width, and beside each."""

BELOW_THE_AXIS = 4.5
"""Where the legend begins, in heights of its letters: below ticks and the axis' name."""

MOST_BEYOND = 0.3
"""How far axes reach beyond the means for the sake of bands, as a fraction of the means' range."""


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """What is drawn of a learner; one row for each seed, (n_seeds, n_episodes)."""

    label: str
    returns: Floats
    optimistic: Floats | None  # None for learners whose values are no upper bounds
    bound: Floats | None  # on the regret; None likewise

    def regret(self, start_value: float | None) -> Floats | None:
        """Regret where V* is known, else what bounds it."""
        if start_value is None:
            return self.bound
        return np.asarray(np.cumsum(start_value - self.returns, axis=1))


def curves_of(label: str, histories: Sequence[History]) -> Curves:
    """Histories of one learner, cut to the episodes that all of them have."""
    episodes = min(map(len, histories))
    optimistic = all(one.optimistic for one in histories)

    def stack(series: Sequence[Floats]) -> Floats:
        return np.array([one[:episodes] for one in series])

    return Curves(
        label + (" (heuristic)" if any(one.heuristic for one in histories) else ""),
        stack([one.returns for one in histories]),
        stack([one.optimistic_values for one in histories]) if optimistic else None,
        stack([one.observable_regret_bound() for one in histories]) if optimistic else None,
    )


def short_names(learners: Iterable[str]) -> dict[str, str]:
    """Learners without their options, which make legends long, where that tells them apart."""
    whole = dict.fromkeys(learners)
    short = {one: one.partition("(")[0] or one for one in whole}
    return {
        one: name if list(short.values()).count(name) == 1 else one for one, name in short.items()
    }


def check_panels(what: str | Sequence[str]) -> tuple[str, ...]:
    """Names of panels, checked."""
    wanted = (what,) if isinstance(what, str) else tuple(what)
    if not wanted or any(one not in PANELS for one in wanted):
        raise ModelError(f"what: expected {' or '.join(map(repr, PANELS))}, found {show(what)}.")
    return wanted


def draw_panel(
    axes: Axes, name: str, curves: Sequence[Curves], start_value: float | None = None
) -> None:
    """Returns with what was believed possible, or regret, of several learners."""
    panel = _returns(curves, start_value) if name == "returns" else _regret(curves, start_value)
    styles = learner_styles([one.label for one in curves])
    shared = axes.has_data()
    for line in panel.lines:
        label = line.label + (f", {line.note}" if line.note else "")
        draw_line(axes, line, styles).set_label("\n".join(wrap(label, _letters(axes))))
    axes.set_ylabel(panel.y_label)
    axes.set_xlabel("episode")
    if panel.lines:
        if not shared:
            _limit(axes, panel.lines)
        _legend(axes)
    else:
        text = "no learner here is optimistic, and V* was not given:\nno bound on the regret"
        axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes)


def _limit(axes: Axes, lines: Sequence[Line]) -> None:
    """Show all means, and as much of the bands as leaves them room: few seeds have wide bands."""
    means = np.concatenate([line.y for line in lines])
    low, high = float(means.min()), float(means.max())
    most = MOST_BEYOND * (high - low)
    if most:
        shown_low, shown_high = axes.get_ylim()
        axes.set_ylim(max(shown_low, low - most), min(shown_high, high + most))


def _makes_room(axes: Axes) -> bool:
    """Whether the figure is laid out again for what stands beside its axes."""
    figure = axes.get_figure(root=True)
    return figure is not None and figure.get_layout_engine() is not None


def _letters(axes: Axes) -> int:
    """Letters that a line of the legend may have."""
    return LONGEST_LINE if _makes_room(axes) else LONGEST_LINE // 2


def _legend(axes: Axes) -> None:
    """Below the axes, where it covers nothing; inside where the figure makes no room for it."""
    if not _makes_room(axes):
        axes.legend(loc="best")
        return
    labels = axes.get_legend_handles_labels()[1]
    longest = max(len(line) for label in labels for line in label.splitlines())
    columns = max(1, min(len(labels), LONGEST_LINE // (longest + ROOM_FOR_HANDLE)))
    axes.legend(
        loc="upper left", bbox_to_anchor=(0, 0), borderaxespad=BELOW_THE_AXIS, ncols=columns
    )


def _returns(curves: Sequence[Curves], start_value: float | None) -> Panel:
    window = smoothing_window(min(one.returns.shape[1] for one in curves))
    lines = []
    for one in curves:
        lines.append(_line(one, moving_mean(one.returns, window)))
        if one.optimistic is not None:
            believed = moving_mean(one.optimistic, window)
            lines.append(_line(one, believed, Role.OPTIMISTIC, "optimistic value"))
    if start_value is not None:
        last = float(max(one.returns.shape[1] for one in curves))
        ends = np.array([1.0, last])
        lines.append(Line("V*", ends, np.full(2, start_value), role=Role.REFERENCE))
    name = "return" if window == 1 else f"return, mean of {window} episodes"
    return Panel(name, tuple(lines))


def _regret(curves: Sequence[Curves], start_value: float | None) -> Panel:
    found = [(one, one.regret(start_value)) for one in curves]
    lines = [_line(one, samples) for one, samples in found if samples is not None]
    name = "observable regret bound" if start_value is None else "regret"
    return Panel(name, tuple(lines))


def _line(curves: Curves, samples: Floats, role: Role = Role.MEASURED, note: str = "") -> Line:
    at = thinned(samples.shape[1], log=False)
    half = None if role is Role.OPTIMISTIC else half_widths(samples[:, at])
    x = np.asarray(at + 1, dtype=np.float64)
    return Line(curves.label, x, samples[:, at].mean(axis=0), curves.label, role, half, note)


def history(
    one: History,
    ax: Any = None,
    *,
    what: str | Sequence[str] = PANELS,
    start_value: float | None = None,
) -> Any:
    """Draw a history over episodes and return the axes.

    Above, returns and the optimistic value; below, regret if `start_value` (V* at the start) is
    given, else the observable bound on it. `what` picks one of "returns" and "regret"; `ax` is as
    many axes as are drawn, by default new ones.
    """
    checked(one, History)
    wanted = check_panels(what)
    curves = [curves_of(short_names([one.learner])[one.learner], [one])]
    with axes_for(ax, len(wanted)) as axes:
        for each, name in zip(axes, wanted, strict=True):
            draw_panel(each, name, curves, start_value)
    return handed_back(axes)


Compared = Sequence[History] | Mapping[str, History | Sequence[History]] | str | os.PathLike[str]
"""Histories (those of one learner are its seeds), histories by label, or a folder of runs."""


def compare(
    histories: Compared,
    ax: Any = None,
    *,
    what: str | Sequence[str] = "returns",
    start_value: float | None = None,
    model: str | None = None,
) -> Any:
    """Draw learners over episodes, means with 95 % t intervals over seeds, and return the axes.

    `histories` is a list, in which those of the same learner are its seeds; a dictionary from
    labels to histories or lists of them; or a folder that `fsmdp compare` wrote (`model` says of
    which model if it has several, and V* is taken from there). `what` is "returns", "regret" or
    both; regret needs `start_value`, else its observable bound is drawn.
    """
    wanted = check_panels(what)
    if isinstance(histories, str | os.PathLike):
        curves, start_value = _of_folder(histories, model, start_value)
    else:
        curves = [curves_of(label, group) for label, group in _grouped(histories).items()]
    with axes_for(ax, len(wanted)) as axes:
        for each, name in zip(axes, wanted, strict=True):
            draw_panel(each, name, curves, start_value)
    return handed_back(axes)


def _grouped(histories: Any) -> dict[str, list[History]]:
    groups: dict[str, list[History]] = {}
    if isinstance(histories, Mapping):
        for label, given in histories.items():
            groups[str(label)] = [given] if isinstance(given, History) else list(given)
    elif isinstance(histories, Sequence):
        names = short_names(str(getattr(one, "learner", "?")) for one in histories)
        for one in histories:
            groups.setdefault(names[str(getattr(one, "learner", "?"))], []).append(one)
    found = [one for group in groups.values() for one in group]
    if not found or not all(groups.values()) or not all(isinstance(one, History) for one in found):
        raise ModelError(
            "histories: expected a list of histories, a dictionary of them by label, or a folder "
            f"of runs, found {show(histories)}; learn() returns a history."
        )
    return groups


def _of_folder(
    folder: str | os.PathLike[str], model: str | None, start_value: float | None
) -> tuple[list[Curves], float | None]:
    results = read_results(folder)
    models = [setting.id for setting in results.specification.models]
    chosen = models[0] if model is None and len(models) == 1 else model
    if chosen not in models:
        raise ModelError(
            f"model: expected one of {show_names(models)}, found {show(model)}; say which to draw."
        )
    trials = trials_of_model(results, chosen)
    if not trials:
        raise ModelError(f"{show(str(folder))}: no run of {show(chosen)} has finished yet.")
    facts = results.models.get(chosen)
    if start_value is None and facts is not None:
        start_value = facts.start_value_exact
    curves = []
    for one in trials:
        bound = one.series("observable_regret_bound")
        optimistic = None if bound is None else one.series("optimistic_values")
        curves.append(Curves(one.label, one.required("returns"), optimistic, bound))
    return curves, start_value


Edge = tuple[int, int]

LETTERS = 0.45
"""Size of letters and nodes in a square picture, beside those of the smallest drawing."""

DASHED = (0, (3, 2))


@dataclass(frozen=True, slots=True, eq=False)
class Dependencies:
    """Arrows from parents to variables, by position, and what else a picture shows of each."""

    always: tuple[Edge, ...]  # under the usual actions
    sometimes: tuple[Edge, ...]  # under some actions only
    acted_on: frozenset[int]  # variables whose law some action changes
    rewarded: frozenset[int]  # variables that some reward depends on
    order: tuple[int, ...]  # of elimination, for singles
    induced_width: int


def dependencies(model: FactoredMDP) -> Dependencies:
    """What a picture of the model shows. Cost: the marginals of singles, and an order."""
    structure, n = model.structure(Basis.singles(model)), len(model.variables)
    always: set[Edge] = set()
    sometimes: set[Edge] = set()
    acted_on: set[int] = set()
    scopes: list[Scope] = []
    for scope, parents in zip(structure.basis.scopes, structure.parents, strict=True):
        for child in scope:
            usual = {parent for parent in parents.groups[0] if parent < n}
            always |= {(parent, child) for parent in usual}
            others = {parent for each in parents for parent in each if parent < n} - usual
            sometimes |= {(parent, child) for parent in others}
            if parents.exceptions or len(usual) < len(parents.groups[0]):
                acted_on.add(child)
        scopes += [tuple(sorted({*scope, *each})) for each in parents]
    rewards = [scope for term in structure.rewards for scope in term.parents]
    order = best_order([one for one in (*scopes, *rewards) if one], model.input_sizes)
    return Dependencies(
        tuple(sorted(always)),
        tuple(sorted(sometimes - always)),
        frozenset(acted_on),
        frozenset(position for scope in rewards for position in scope if position < n),
        tuple(position for position in order.variables if position < n),
        order.induced_width,
    )


def model(one: FactoredMDP, ax: Any = None) -> Any:
    """Draw the network of a model and return the axes.

    Arrows lead from what a variable's next value depends on, dashed where only some actions make
    it so. Squares are variables that actions change, thick rims are rewarded; colours and numbers
    give the order in which variables are eliminated. Rings are around variables that decide what is
    allowed, and whether the episode is over.
    """
    from matplotlib import colormaps

    checked(one, FactoredMDP)
    found = dependencies(one)
    names = [variable.name for variable in one.variables]
    joined = sorted({(min(e), max(e)) for e in (*found.always, *found.sometimes) if e[0] != e[1]})
    positions, _ = place(len(names), joined)
    small = len(names) <= MOST_RANKED
    with square_for(ax) as axes:
        size = node_size(len(names))
        for edges, style in ((found.always, "solid"), (found.sometimes, DASHED)):
            draw_arrows(axes, positions, edges, style, size)
        _draw_variables(axes, positions, found, size, numbers=small)
        rings = _draw_rings(axes, positions, one, size)
        if small:
            sides = name_sides(positions, names, LETTERS)
            draw_names(axes, positions, names, sides, size)
        axes.set_title(
            f"{plural(len(names), 'variable')}, {one.actions.text}, "
            f"induced width {found.induced_width}",
            fontsize=9,
            loc="left",
        )
        shown = "number and colour" if small else "colour"
        explain(
            axes,
            legend_node("s", "actions change it"),
            legend_node("o", "rewarded", COLORS[1][0], 2.0),
            legend_line("some actions only", DASHED),
            legend_node("o", f"{shown}: order of elimination", face=colormaps["cividis"](0.5)),
            *rings,
        )
    return axes


def _draw_rings(axes: Any, at: Floats, one: FactoredMDP, size: float) -> list[Any]:
    """Rings around what conditions depend on; what they mean, for a legend."""
    handles, n = [], len(one.variables)
    deciding = [table for cases in one.conditions.allowed for table in cases]
    for number, (tables, label) in enumerate(
        ((deciding, "decides what is allowed"), (one.conditions.terminal, "decides the end"))
    ):
        positions = sorted({p for table in tables for p in table.scope if p < n})
        if not positions:
            continue
        color, width = COLORS[2 + number][0], size + 6 + 5 * number
        style = {"marker": "o", "linestyle": "none", "markerfacecolor": "none"}
        axes.plot(*at[positions].T, markersize=width, markeredgecolor=color, zorder=1.5, **style)
        handles.append(legend_node("o", label, color, 1.0))
    return handles


def draw_arrows(axes: Any, at: Floats, edges: Any, style: Any, size: float) -> None:
    """Arrows from parents to children, by position."""
    for parent, child in edges:
        if parent != child:  # almost every variable depends on itself
            axes.annotate(
                "",
                at[child],
                at[parent],
                arrowprops={
                    "arrowstyle": "-|>",
                    "color": MUTED,
                    "linewidth": 0.9,
                    "linestyle": style,
                    "shrinkA": size / 2,
                    "shrinkB": size / 2 + 1,
                    "connectionstyle": "arc3,rad=0.08",
                },
                zorder=1,
            )


def _draw_variables(axes: Any, at: Floats, found: Dependencies, size: float, numbers: bool) -> None:
    from matplotlib import colormaps

    rank = {variable: position for position, variable in enumerate(found.order)}
    last = max(1, len(at) - 1)
    for variable, (x, y) in enumerate(at):
        share = rank.get(variable, last) / last
        rewarded = variable in found.rewarded
        axes.plot(
            [x],
            [y],
            marker="s" if variable in found.acted_on else "o",
            markersize=size,
            color=colormaps["cividis"](share),
            markeredgecolor=COLORS[1][0] if rewarded else INK,
            markeredgewidth=2.0 if rewarded else 0.6,
            zorder=2,
        )
        if numbers:
            ink = "#ffffff" if share < 0.55 else "#10131a"
            text = str(rank.get(variable, last) + 1)
            axes.text(x, y, text, ha="center", va="center", fontsize=size * 0.42, color=ink)


def explain(axes: Any, *handles: Any) -> None:
    """A legend below a network."""
    axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0.02), ncols=2)


def legend_node(
    marker: str, label: str, edge: str = INK, width: float = 0.6, face: Any = "#ffffff"
) -> Any:
    """What a kind of node means."""
    from matplotlib.lines import Line2D

    return Line2D(
        [],
        [],
        linestyle="",
        marker=marker,
        markersize=8,
        markerfacecolor=face,
        markeredgecolor=edge,
        markeredgewidth=width,
        label=label,
    )


def legend_line(label: str, style: Any, color: str = MUTED) -> Any:
    """What a kind of line means."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=color, linewidth=0.9, linestyle=style, label=label)


ERRORS = 2.0
"""Standard errors that the band around the incumbent shows."""


def plan(one: Plan, ax: Any = None) -> Any:
    """Draw what the policy earned and what was certified, over seconds, and return the axes.

    The band around the policy is two standard errors of the episodes that chose it; the point at
    the end is its mean in fresh ones. What lies between both lines is the gap.
    """
    checked(one, Plan)
    if not one.log:
        raise PlanningError(
            f"plot: a plan of method {one.method!r} has no log; only the solver's plans "
            "(method='auto') know how they came about."
        )
    seconds = np.array([line.seconds for line in one.log])
    bound = np.array([line.upper_bound for line in one.log])
    judged = [line for line in one.log if line.incumbent is not None]
    with axes_for(ax, 1, 3.4) as (axes,):
        (policy_color, _), (bound_color, _) = COLORS[:2]
        axes.step(seconds, bound, where="post", color=bound_color, label="certified bound")
        if judged:
            at = np.array([line.seconds for line in judged])
            mean = np.array([line.incumbent for line in judged], dtype=np.float64)
            error = ERRORS * np.array([line.standard_error or 0.0 for line in judged])
            axes.step(at, mean, where="post", color=policy_color, label="policy")
            axes.fill_between(
                at, mean - error, mean + error, step="post", color=policy_color, alpha=BAND_OPACITY
            )
            above = np.interp(at, seconds, bound)
            axes.fill_between(at, mean, above, step="post", color=MUTED, alpha=0.07, linewidth=0)
        if one.incumbent is not None:
            end, spread = seconds[-1], ERRORS * one.incumbent.standard_error
            axes.errorbar(
                [end],
                [one.incumbent.mean],
                [spread],
                fmt="o",
                color=INK,
                capsize=3,
                markersize=4,
                label="in fresh episodes" if one.incumbent.level < 1 else "proved",
            )
        axes.set_xlabel("seconds")
        axes.set_ylabel("return")
        axes.legend()
    return axes


MOST_NAMES, MOST_ACTIONS, MOST_LABELS = 40, 60, 20


def trajectories(
    model: FactoredMDP,
    policy: Policy = "random",
    ax: Any = None,
    *,
    episodes: int = 1,
    seed: int = 0,
    steps: int | None = None,
) -> Any:
    """Draw the episodes of a policy as a raster and return the axes.

    Of one episode, values and, below, the actions taken; of several, mean values.
    """
    from matplotlib.ticker import MaxNLocator

    found = record(model, policy, episodes, seed, steps)
    states = found.states[:, :-1, : len(model.variables)]
    values = states.mean(axis=0).T  # (n_variables, steps)
    names = [printable(variable.name, 20) for variable in model.variables]
    with axes_for(ax, 1, float(np.clip(0.25 * len(names), 1.5, 8))) as (axes,):
        image = axes.imshow(
            values,
            aspect="auto",
            interpolation="nearest",
            cmap="cividis",
            vmin=0,
            vmax=max(model.sizes) - 1,
            extent=(0.5, values.shape[1] + 0.5, len(names) - 0.5, -0.5),
        )
        axes.grid(visible=False)
        if len(names) <= MOST_NAMES:
            axes.set_yticks(range(len(names)), names)
        else:
            axes.set_ylabel("variable")
        axes.set_xlabel("step")
        if episodes == 1 and values.shape[1] <= MOST_LABELS:
            _write_labels(axes, model.variables, states[0].T)
        if episodes == 1 and values.shape[1] <= MOST_ACTIONS:
            taken = [printable(name, 20) for name in actions_taken(model, found)]
            steps_of = range(1, len(taken) + 1)
            axes.set_xticks(
                steps_of,
                [f"{step}  {name}" for step, name in zip(steps_of, taken, strict=True)],
                rotation=90,
                color=INK,
                fontsize=7,
            )
            axes.set_xlabel("step and action")
        label = "value" if episodes == 1 else f"mean value of {episodes} episodes"
        whole = MaxNLocator(integer=True, min_n_ticks=1)
        axes.figure.colorbar(image, ax=axes, label=label, fraction=0.04, ticks=whole)
    return axes


def _write_labels(axes: Axes, variables: Sequence[Variable], values: Any) -> None:
    """Labels of values (n_variables, steps), in their cells, of variables that have some."""
    largest = max(variable.size for variable in variables) - 1
    for row, variable in enumerate(variables):
        for step, value in enumerate(values[row].tolist() if variable.labels else (), start=1):
            color = "black" if 2 * value > largest else "white"  # on cividis, light at the top
            text = printable(variable.text(int(value)), 8)
            axes.text(step, row, text, ha="center", va="center", fontsize=6, color=color)


def actions_taken(model: FactoredMDP, found: Record) -> list[str]:
    """Names of the actions of the first episode; nothing after its end."""
    actions, rows = model.actions, found.states[0, :-1, len(model.variables) :]
    taken = list(zip(found.actions[0].tolist(), rows, strict=True))
    length = int(found.lengths[0])
    names = [actions.name(actions.choice(case, values)) for case, values in taken[:length]]
    return [*names, *("over" for _ in taken[length:])]


DRAWN_TOGETHER = (0, (1, 1.5))


def discovery(one: Discovery, ax: Any = None) -> Any:
    """Draw what was found in data and return the axes.

    Arrows are edges beyond doubt, dashed where data cannot tell the parent from others; dotted
    lines join variables whose next values are drawn together; squares move otherwise under some
    actions. A hollow variable has undecided edges.
    """
    checked(one, Discovery)
    names = [variable.name for variable in one.variables]
    at = {name: position for position, name in enumerate(names)}
    edges = {(at[e.parent], at[e.child]): e.instead for e in one.evidence if e.parent in at}
    pairs = [(at[pair.one], at[pair.other]) for pair in one.together]
    joined = sorted({(min(e), max(e)) for e in (*edges, *pairs) if e[0] != e[1]})
    positions, _ = place(len(names), joined)
    undecided = {edge.child for edge in one.undecided}
    with square_for(ax) as axes:
        size = node_size(len(names))
        sure = [edge for edge, instead in edges.items() if not instead]
        draw_arrows(axes, positions, sure, "solid", size)
        draw_arrows(axes, positions, sorted({*edges} - {*sure}), DASHED, size)
        for first, second in pairs:
            axes.plot(
                *positions[[first, second]].T,
                color=COLORS[1][0],
                linewidth=1.2,
                linestyle=DRAWN_TOGETHER,
                zorder=1,
            )
        for name, (x, y) in zip(names, positions, strict=True):
            axes.plot(
                [x],
                [y],
                marker="s" if one.apart[name] else "o",
                markersize=size,
                color="#ffffff" if name in undecided else COLORS[0][0],
                markeredgecolor=INK,
                markeredgewidth=0.6,
                zorder=2,
            )
        if len(names) <= MOST_RANKED:
            draw_names(axes, positions, names, name_sides(positions, names, LETTERS), size)
        axes.set_title(
            f"{plural(len(one.evidence), 'edge')} from {one.n_transitions:,} transitions, "
            f"{len(one.undecided)} undecided",
            fontsize=9,
            loc="left",
        )
        explain(
            axes,
            legend_node("s", "actions change it"),
            legend_node("o", "some edges undecided"),
            legend_line("drawn together", DRAWN_TOGETHER, COLORS[1][0]),
            legend_line("cannot be distinguished from others", DASHED),
        )
    return axes
