"""Tuning constants of the solver stand in one module, each with its reason, and each is used."""

import ast
from pathlib import Path

import fsmdp.solver
from fsmdp.solver import parameters

FOLDER = Path(fsmdp.solver.__file__).parent
HOME = FOLDER / "parameters.py"
FACTS = {
    "CLOSED",  # codes by which compiled functions say how they ended, and sizes of their arrays
    "EXPANSIONS",
    "N_TALLIES",
    "NOT_EXPANDED",
    "FEW",  # room that arrays begin with, before they double
}


def constants(path):
    """Names of a module that are set to numbers."""
    for node in ast.parse(path.read_text()).body:
        if not isinstance(node, ast.Assign):
            continue
        elements = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        numeric = all(
            all(
                isinstance(
                    one,
                    ast.Constant
                    | ast.BinOp
                    | ast.UnaryOp
                    | ast.operator
                    | ast.unaryop
                    | ast.Name
                    | ast.expr_context,
                )
                for one in ast.walk(element)
            )
            and not any(isinstance(getattr(one, "value", 0), str) for one in ast.walk(element))
            for element in elements
        )
        for target in node.targets:
            for name in ast.walk(target):
                if numeric and isinstance(name, ast.Name) and name.id.isupper():
                    yield name.id


def test_no_other_module_of_the_solver_has_tuning_constants():
    found = {
        (str(path.relative_to(FOLDER)), name)
        for path in FOLDER.rglob("*.py")
        if path != HOME
        for name in constants(path)
        if name not in FACTS
    }
    assert found == set()
    assert len(list(constants(HOME))) > 80


def test_every_parameter_has_a_reason_and_is_used():
    body = ast.parse(HOME.read_text()).body
    used = " ".join(path.read_text() for path in FOLDER.rglob("*.py") if path != HOME)
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.Assign):
            (target,) = node.targets
            assert isinstance(after, ast.Expr), f"{target.id} has no reason"
            assert isinstance(after.value.value, str)
            assert f"tuned.{target.id}" in used, f"{target.id} is not used"
            assert isinstance(getattr(parameters, target.id), int | float)
