"""Degenerate models x methods x bases: plans that bound the optimum, and nothing but our errors."""

import itertools
import warnings

import pytest

import fsmdp
from fsmdp.errors import FsmdpError, TrivialBoundWarning
from fsmdp.solver.plan import METHODS
from tests.degenerate_models import BASES, DEGENERATE

pytestmark = pytest.mark.slow

LIMITS = (None, 0.0, 0.05)


@pytest.mark.parametrize("method", METHODS)
def test_degenerate_models_are_planned_with_every_basis(method, capsys):
    counts = {}
    for (name, model), basis, limit in itertools.product(DEGENERATE.items(), BASES, LIMITS):
        case = f"{name}, {basis}, {limit} s"
        options = {"exact": False, "rounds": 1} if method == "auto" else {}
        optimum = fsmdp.solve_exactly(model).start_value
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TrivialBoundWarning)
            try:
                chosen = BASES[basis](model)
                plan = fsmdp.plan(model, chosen, method=method, time_limit=limit, **options)
            except FsmdpError:
                assert (method, model.horizon) == ("stagewise", None), case
                counts["refused"] = counts.get("refused", 0) + 1
                continue
        assert plan.upper_bound >= optimum - 1e-9 * max(1.0, abs(optimum)), case
        assert plan.action([0] * len(model.variables)) in model.actions
        assert repr(plan)
        assert plan._repr_html_()
        counts[str(plan.status)] = counts.get(str(plan.status), 0) + 1
    with capsys.disabled():
        ends = ", ".join(f"{one} {count}" for one, count in sorted(counts.items()))
        print(f"\n{method}: {sum(counts.values())} degenerate plans ({ends})")
