"""What the report says in words and figures, computed from the results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal

from fsmdp.experiments.report.style import printable
from fsmdp.experiments.store import ModelFacts, Results, RunStatus
from fsmdp.experiments.summary import Interval, Row
from fsmdp.foundation.checks import plural
from fsmdp.foundation.numbers import mean_and_error, percent, plain, upper, with_error


def opening(results: Results) -> str:
    """What was run, and what of it is not there."""
    specification = results.specification
    failed = sum(run.status == RunStatus.FAILED for run in results.runs)
    text = (
        f"{plural(len(specification.learners), 'learner')} on "
        f"{plural(len(specification.models), 'model')}, "
        f"{plural(len(specification.seeds), 'seed')} each, "
        f"{plural(specification.episodes, 'episode')} a run: "
        f"{plural(len(specification.runs), 'run')} in all"
    )
    absent = [f"{failed} refused or failed (listed below)"] if failed else []
    if results.missing:
        absent.append(f"{len(results.missing)} not finished")
    return text + (f", of which {' and '.join(absent)}." if absent else ".")


def tally(finals_by_model: Iterable[Sequence[Row]]) -> str:
    """On how many models each learner did best, by intervals that do not overlap."""
    ranked = [_ranked(finals) for finals in finals_by_model]
    wins = Counter(
        learners[0].trials.label
        for learners in ranked
        if len(learners) > 1 and _is_clear(learners[0], learners[1])
    )
    counts = [f"{label} on {count}" for label, count in wins.most_common()]
    return f"Clearly best: {', '.join(counts)} of {len(ranked)} models." if counts else ""


def verdict(model: str, finals: Sequence[Row]) -> str:
    """Which learner did best on a model: least regret, or the highest return at the end."""
    learners = _ranked(finals)
    if not learners:
        return ""
    best, name = learners[0], printable(model)
    if len(learners) == 1:
        return f"On {name}, {best.trials.label} ended with {_ended(best)}."
    second = learners[1]
    if 1 in (best.done, second.done):
        return (
            f"On {name}, {best.trials.label} ended first, {_ended(best)}, before "
            f"{second.trials.label}, {_ended(second)}: one seed, so no clear winner."
        )
    if not _is_clear(best, second):
        return (
            f"On {name}, {best.trials.label} ended first by its mean, {_ended(best)}, but its "
            f"interval overlaps that of {second.trials.label}, {_ended(second)}: no clear winner."
        )
    return (
        f"On {name}, {best.trials.label} did best: {_ended(best)}. Next came "
        f"{second.trials.label}: {_ended(second)}."
    )


def certified(facts: ModelFacts) -> str:
    """The certified gap of the plan of the known model."""
    bound, mean, gap = facts.plan_upper_bound, facts.plan_policy_mean, facts.plan_gap
    if bound is None or mean is None or gap is None:
        return ""
    error = facts.plan_policy_standard_error or 0.0
    text = (
        f"No policy earns more than {upper(bound, 6, facts.scale)}, by a certificate over all "
        f"states; the plan of the known model earns {with_error(mean, error, facts.scale)} "
        "(standard error)"
    )
    return text + ("." if percent(gap) == "-" else f": a gap of {percent(gap)}.")


def mean_and_half_width(found: Interval) -> tuple[str, str]:
    """A mean to as many places as its interval warrants, and half of that, set for a page."""
    mean, half = map(_typeset, mean_and_error(found.mean, found.half_width))
    return mean, half


def _typeset(text: str) -> str:
    """A number with thousands apart, and a minus sign for a hyphen."""
    return f"{Decimal(text):,}".replace("-", "−") if text else ""


def with_interval(found: Interval) -> str:
    """A mean and half the width of its interval, where there is one."""
    mean, half = mean_and_half_width(found)
    return f"{mean} ± {half}" if half else mean


def _ranked(finals: Sequence[Row]) -> list[Row]:
    """Learners from best to worst, without those that were given the model."""
    return sorted((one for one in finals if not one.trials.told), key=lambda one: _loss(one).mean)


def _loss(final: Row) -> Interval:
    """Lower is better: the regret, or the return of the end where regret is not known."""
    if "regret" in final.figures:
        return final.figures["regret"]
    found = final.figures["return_last_tenth"]
    return Interval(-found.mean, found.half_width)


def _ended(final: Row) -> str:
    regret = final.figures.get("regret")
    if regret is None:
        late = with_interval(final.figures["return_last_tenth"])
        return f"return {late} in the last tenth of episodes"
    text = f"regret {with_interval(regret)}"
    below = final.figures.get("percent_below_best")
    if below is None:
        return text
    if below.mean <= (below.half_width or 0.0):
        how = "not below V* in the last tenth of episodes"
        if below.half_width is not None:
            how = "at V* in the last tenth of episodes, up to the interval"
        return f"{text}, {how}"
    return text + f", in the last tenth of episodes {plain(below.mean, 2)} % below V*"


def _is_clear(best: Row, second: Row) -> bool:
    """Whether the intervals of two learners lie apart; one seed has none."""
    first, other = _loss(best), _loss(second)
    if first.half_width is None or other.half_width is None:
        return False
    return first.mean + first.half_width < other.mean - other.half_width
