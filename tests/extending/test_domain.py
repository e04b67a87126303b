"""A domain of one's own: a function with annotated options, registered in one line."""

from typing import Annotated

import pytest

import fsmdp
from fsmdp.domains import DOMAINS
from fsmdp.foundation.kinds import OneOf
from fsmdp.io.readers import complete_model, read_model


def lamps(
    count: int = 3, life: float = 0.9, wiring: Annotated[str, OneOf(("alone", "row"))] = "alone"
):
    """Lamps that burn out; one may be replaced at each step. In a row, the one before matters."""
    names = [f"lamp-{n}" for n in range(count)]
    burning = [[1.0, 0.0], [1 - life, life]]  # axes: now, next; 0 is dark
    conditionals = []
    for n, name in enumerate(names):
        follows = wiring == "row" and n > 0
        table = [[[1.0, 0.0], [1.0, 0.0]], burning] if follows else burning
        parents = [names[n - 1], name] if follows else [name]
        replaced = fsmdp.Case(f"replace-{n}", table=[0.0, 1.0])
        conditionals.append(
            fsmdp.Conditional(name, [replaced, fsmdp.Case(fsmdp.ANY, parents, table)])
        )
    return fsmdp.FactoredMDP(
        variables=[fsmdp.Variable(name, 2) for name in names],
        actions=["wait", *(f"replace-{n}" for n in range(count))],
        conditionals=conditionals,
        rewards=[
            fsmdp.Reward(name, fsmdp.Case(fsmdp.ANY, parents=[name], table=[0.0, 1 / count]))
            for name in names
        ],
        horizon=6,
        initial=dict.fromkeys(names, 1),
    )


@pytest.fixture
def registered():
    fsmdp.domains.register(fsmdp.domains.Domain("lamps", lamps, "lamps", positional=1))
    yield
    DOMAINS.remove("lamps")


def test_text_builds_the_model_with_its_options(registered):
    model = read_model("lamps:4:wiring=row:life=0.8")
    assert fsmdp.solve_exactly(model).start_value == pytest.approx(
        fsmdp.solve_exactly(lamps(4, 0.8, "row")).start_value
    )
    assert fsmdp.solve_exactly(model).start_value < fsmdp.solve_exactly(lamps(4, 0.8)).start_value
    assert "lamps" in complete_model("lam")


def test_options_of_another_kind_are_refused_with_what_was_declared(registered):
    with pytest.raises(fsmdp.ModelError, match="expected one of alone, row, found 'ring'"):
        read_model("lamps:4:wiring=ring")
    with pytest.raises(fsmdp.ModelError, match="expected a whole number, found 'many'"):
        read_model("lamps:count=many")
