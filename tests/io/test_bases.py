"""Blocks of variables that speak of the same object."""

import pytest
from tests.io.rddl_texts import KEEP, load_problem

import fsmdp

MORE = (
    "lit(thing) : { state-fluent, bool, default = false };"
    "lamp : { state-fluent, bool, default = false };"
)
CPFS = KEEP + "lit'(?t) = on(?t); lamp' = lamp;"


def scopes_of(model, **options):
    names = [variable.name for variable in model.variables]
    basis = fsmdp.rddl.object_basis(model, **options)
    return {tuple(names[p] for p in scope) for scope in basis.scopes if scope}


def test_variables_with_the_same_arguments_make_a_block(tmp_path):
    model = load_problem(tmp_path, cpfs=CPFS, pvariables=MORE)
    expected = {(f"on(t{i})", f"lit(t{i})", "lamp") for i in (1, 2, 3)}
    assert scopes_of(model) == expected
    assert len(fsmdp.rddl.object_basis(model)) == 1 + 3 * 7


def test_blocks_stay_within_the_limit(tmp_path):
    model = load_problem(tmp_path, cpfs=CPFS, pvariables=MORE)
    expected = {(f"on(t{i})", f"lit(t{i})") for i in (1, 2, 3)} | {("lamp",)}
    assert scopes_of(model, most_assignments=4) == expected
    singles = {(variable.name,) for variable in model.variables}
    assert scopes_of(model, most_assignments=2) == singles


def test_the_limit_must_be_a_whole_number(tmp_path):
    model = load_problem(tmp_path, cpfs=CPFS, pvariables=MORE)
    with pytest.raises(fsmdp.ModelError, match="most_assignments"):
        fsmdp.rddl.object_basis(model, most_assignments=1)
