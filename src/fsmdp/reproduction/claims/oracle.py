"""Theorem 1: the separation oracle takes polynomial time, given a good elimination order."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars

from fsmdp.bounds.bellman import network_of_model
from fsmdp.bounds.certificate import separate
from fsmdp.bounds.enumerated import enumerate_known
from fsmdp.foundation.streams import Purpose, generator
from fsmdp.model.basis import Basis
from fsmdp.model.mdp import FactoredMDP
from fsmdp.report.charts import Chart, Line, Panel
from fsmdp.reproduction.claim import (
    Callback,
    Claim,
    Evidence,
    Form,
    Judgement,
    Verdict,
    band_model,
    fitted_exponent,
    seconds_of,
)

MOST_EXPONENT = 2.0
MOST_DIFFERENCE = 1e-9

ELIMINATION, ENUMERATION = "elimination", "enumeration"


@dataclass(frozen=True, slots=True, eq=False)
class Sizes:
    """What is swept, everything else staying as it is."""

    variables: Sequence[int]
    actions: Sequence[int]
    values: Sequence[int]
    widths: Sequence[int]
    enumerated: Sequence[int]
    fixed: int  # variables in the sweeps of actions, values and widths


SIZES = {
    Form.TINY: Sizes((16, 64), (4, 32), (2, 4), (1, 3), (4, 6), 8),
    Form.SMALL: Sizes(
        (16, 64, 256, 1024), (4, 32, 256, 1024), (2, 4, 8, 16), (2, 6, 10, 14), (6, 8, 10, 12), 24
    ),
    Form.FULL: Sizes(
        (16, 64, 256, 1024, 4096),
        (4, 32, 256, 1024, 4096),
        (2, 4, 8, 16, 24),
        (2, 6, 10, 14, 18),
        (6, 8, 10, 12, 13),
        24,
    ),
}

SWEEPS = {
    "variables": "number of variables m",
    "actions": "number of actions",
    "values": "largest table, as values per variable grow",
    "width": "largest table, as the induced width grows",
}


def run(form: Form, seed: int, callback: Callback) -> Evidence:
    """Time the oracle while one size grows, and compare with enumeration where that is possible."""
    sizes, rows, timed, agreement = SIZES[form], [], [], []
    for sweep, size, model in _models(sizes, seed):
        callback(f"oracle: {sweep} {size}")
        network, intervals = network_of_model(model, Basis.singles(model))
        weights = _weights(len(network.basis), seed)
        largest = network.elimination.largest_table
        grown = largest if sweep in ("values", "width") else size
        rows.append(
            {
                "sweep": sweep,
                "size": size,
                "grown": grown,
                "induced_width": network.elimination.induced_width,
                "table_entries": network.elimination.n_rows,
            }
        )
        separate(network, intervals, weights)
        seconds, _ = seconds_of(partial(separate, network, intervals, weights))
        timed.append(_time(sweep, size, grown, ELIMINATION, seconds))
    for size in sizes.enumerated:
        callback(f"enumeration: {size} variables")
        model = band_model(size, seed=seed)
        network, intervals = network_of_model(model, Basis.singles(model))
        weights = _weights(len(network.basis), seed)
        numbers = enumerate_known(model, Basis.singles(model))
        seconds, excess = seconds_of(partial(numbers.excesses, weights))
        found = separate(network, intervals, weights).violation
        agreement.append({"variables": size, "difference": abs(float(excess.max()) - found)})
        timed.append(_time("variables", size, size, ENUMERATION, seconds))
    return Evidence(
        {"sizes": polars.DataFrame(rows), "agreement": polars.DataFrame(agreement)},
        {"seconds": polars.DataFrame(timed)},
    )


def _models(sizes: Sizes, seed: int) -> list[tuple[str, int, FactoredMDP]]:
    m = sizes.fixed
    return [
        *(("variables", n, band_model(n, seed=seed)) for n in sizes.variables),
        *(("actions", n, band_model(m, actions=n, seed=seed)) for n in sizes.actions),
        *(("values", n, band_model(m, size=n, seed=seed)) for n in sizes.values),
        *(("width", n, band_model(m, reach=n, seed=seed)) for n in sizes.widths),
    ]


def _weights(n_functions: int, seed: int) -> Any:
    """Weights of two steps, so that both rewards and backups count."""
    return generator(seed, Purpose.REPRODUCTION, "weights").normal(size=(2, n_functions))


def _time(sweep: str, size: int, grown: int, method: str, seconds: float) -> dict[str, Any]:
    return {"sweep": sweep, "size": size, "grown": grown, "method": method, "seconds": seconds}


def exponents(evidence: Evidence) -> dict[str, float]:
    """By sweep: the exponent with which the time of elimination grows."""
    times = evidence["seconds"].filter(polars.col("method") == ELIMINATION)
    return {
        sweep: fitted_exponent(part["grown"], part["seconds"])
        for sweep in SWEEPS
        for part in [times.filter(polars.col("sweep") == sweep)]
    }


def enumeration_factor(evidence: Evidence) -> float:
    """By how much the time of enumeration is multiplied with each variable added."""
    part = evidence["seconds"].filter(polars.col("method") == ENUMERATION)
    slope, _ = np.polyfit(part["size"].to_numpy(), np.log(part["seconds"].to_numpy()), 1)
    return float(np.exp(slope))


def judge(evidence: Evidence) -> Judgement:
    """Polynomial in every size, and the same answer as enumeration."""
    found, factor = exponents(evidence), enumeration_factor(evidence)
    difference = float(evidence["agreement"]["difference"].max())  # type: ignore[arg-type]
    reason = (
        ", ".join(f"{name} {value:z.2f}" for name, value in found.items())
        + f" (exponents); enumeration takes {factor:.1f} times as long for each variable added; "
        f"largest difference between the two {difference:.0e}"
    )
    good = max(found.values()) <= MOST_EXPONENT and difference <= MOST_DIFFERENCE
    return Judgement(Verdict.HOLDS if good else Verdict.FAILS, reason)


def draw(evidence: Evidence) -> Chart:
    """Time relative to the smallest size, against size relative to the smallest."""
    found = exponents(evidence)
    lines = []
    for sweep, words in SWEEPS.items():
        part = evidence["seconds"].filter(
            (polars.col("method") == ELIMINATION) & (polars.col("sweep") == sweep)
        )
        lines.append(_relative(words, part, sweep, f"exponent {found[sweep]:z.2f}"))
    part = evidence["seconds"].filter(polars.col("method") == ENUMERATION)
    note = f"× {enumeration_factor(evidence):.1f} a variable"
    lines.append(_relative("number of variables, by enumeration", part, ENUMERATION, note))
    return Chart(
        name="oracle",
        title="Time of the separation oracle",
        caption="Each curve grows one size and leaves the others as they are; both axes are "
        "relative to its smallest size. A straight line on these axes is a polynomial.",
        panels=(Panel("time, relative", tuple(lines), log=True),),
        x_label="size, relative",
        log=True,
    )


def _relative(label: str, part: polars.DataFrame, style: str, note: str) -> Line:
    x, y = part["grown"].to_numpy(), part["seconds"].to_numpy()
    return Line(label, x / x[0], y / y[0], style, note=note)


CLAIM = Claim(
    name="oracle",
    title="Theorem 1: the worst violated inequality is found in polynomial time",
    statement="A planner that has exponentially many constraints needs one question answered: "
    "which constraint do these weights violate most? With an elimination order of small width the "
    "answer takes time polynomial in the number of variables, actions and values.",
    what_was_run="A chain of variables, each depending on itself and a few before it, with random "
    "transitions. One size grows at a time: variables, actions, values of a variable, induced "
    "width. Each oracle call evaluates all states and actions. Beside it, all states visited one "
    "by one, as long as that is possible.",
    rule=f"Holds if every fitted exponent of the time (in variables, in actions, and in the "
    f"largest table, size^(width + 1)) is at most {MOST_EXPONENT:g} and the oracle agrees with "
    f"enumeration to {MOST_DIFFERENCE:g}.",
    run=run,
    judge=judge,
    draw=draw,
)
