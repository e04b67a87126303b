"""What the report says in words, computed from the figures."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fsmdp.experiments.report.estimates import Estimate
from fsmdp.experiments.report.style import printable
from fsmdp.experiments.report.summary import Final, significant
from fsmdp.experiments.store import ModelFacts, Results
from fsmdp.model.checks import plural


def opening(results: Results) -> str:
    """What was run, and what of it is not there."""
    specification = results.specification
    failed = sum(run.status == "failed" for run in results.runs)
    text = (
        f"{plural(len(specification.learners), 'learner').capitalize()} on "
        f"{plural(len(specification.models), 'model')}, "
        f"{plural(len(specification.seeds), 'seed')} each, "
        f"{plural(specification.episodes, 'episode')} a run: "
        f"{plural(len(specification.runs), 'run')} in all"
    )
    absent = []
    if failed:
        absent.append(f"{failed} failed")
    if results.missing:
        absent.append(f"{len(results.missing)} not finished")
    return text + (f", of which {' and '.join(absent)}." if absent else ".")


def verdict(model: str, finals: Sequence[Final]) -> str:
    """Which learner did best on a model: the highest mean return, hence the least regret."""
    learners = sorted(
        (final for final in finals if not final.trials.told),
        key=lambda final: _loss(final).mean,
    )
    if not learners:
        return ""
    name = printable(model)
    best = learners[0]
    if len(learners) == 1:
        return f"On {name}, {_ended(best)}."
    return (
        f"On {name}, {best.trials.label} did best: {_ended(best, named=False)}; next came "
        f"{_ended(learners[1])}{_doubt(best, learners[1])}."
    )


def _loss(final: Final) -> Estimate:
    """Lower is better: the regret, or the return of the end where regret is not known."""
    if "regret" in final.figures:
        return final.figures["regret"]
    found = final.figures["return_last_tenth"]
    return Estimate(-found.mean, found.half_width)


def _ended(final: Final, named: bool = True) -> str:
    name = f"{final.trials.label} with " if named else ""
    if "regret" in final.figures:
        text = f"{name}regret {with_interval(final.figures['regret'])}"
        percent = final.figures.get("percent_below_best")
        if percent is not None:
            text += f", {percent.mean:.2g} % below V* in the last tenth of episodes"
        return text
    late = with_interval(final.figures["return_last_tenth"])
    return f"{name}return {late} in the last tenth of episodes"


def _doubt(best: Final, second: Final) -> str:
    first, other = _loss(best), _loss(second)
    if math.isnan(first.half_width) or math.isnan(other.half_width):
        return " (one seed: the difference may be chance)"
    overlap = first.mean + first.half_width >= other.mean - other.half_width
    return " (their intervals overlap)" if overlap else ""


def with_interval(found: Estimate) -> str:
    """A mean and half the width of its interval, where there is one."""
    if math.isnan(found.half_width):
        return significant(found.mean)
    return f"{significant(found.mean)} ± {two_figures(found.half_width)}"


def two_figures(value: float) -> str:
    """A half-width: two figures say enough."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def certified(facts: ModelFacts) -> str:
    """The certified gap of the plan of the known model."""
    bound, mean = facts.plan_upper_bound, facts.plan_policy_mean
    if bound is None or mean is None:
        return ""
    error = facts.plan_policy_standard_error or 0.0
    text = (
        f"No policy earns more than {bound:.6g}, by a certificate over all states; the plan of the "
        f"known model earns {mean:.6g} ± {error:.2g} (standard error)"
    )
    return text + (f": a gap of {100 * (bound - mean) / abs(bound):.3g} %." if bound else ".")
