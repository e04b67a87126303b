"""What tests of public names throw at them, and what may come back."""

import math

import numpy as np

from fsmdp import ANY, Basis, Case, FsmdpError, Table, Variable, domains, solve_exactly

X = Variable("x", 2)
RING = domains.sysadmin(3)
EXACT = solve_exactly(RING)

JUNK = {
    **{repr(value): value for value in (None, True, -1, 0, 2.5, math.nan, math.inf, 1j)},
    **{"10**400": 10**400, "10**5000": 10**5000, "float32": np.float32(1)},
    **{ascii(value): value for value in ("", "x", "ab", "\ud800", b"x")},
    **{repr(value): value for value in ([], {}, set(), {"x"}, {"x": 1}, [None], [[]], [["x"]])},
    **{"X": X, "Variable": Variable, "[X]": [X], "table": Table("x", [0, 1]), "basis": Basis()},
    **{"Case": Case, "[case]": [Case(ANY)], "case": Case(ANY, ["x"]), "ANY": ANY},
    **{"model": RING, "solution": EXACT, "object": object(), "slice": slice(None)},
    **{"range": range(3), "iterator": iter([]), "function": lambda *_: 0},
    **{"zeros": np.zeros(3), "array of text": np.array("x"), "array of one": np.array(1)},
    **{"array of objects": np.array([object()]), "masked": np.ma.masked_array([1.0])},
}

# What is no junk after all, by the reason.
MODEL, SOLUTION, BASIS = ("model",), ("solution",), ("basis",)  # the very thing that was asked for
NONE = ("None",)  # the default, or "not given"
EMPTY = ("[]", "iterator")  # none of them
NAME = ("'x'", "'ab'")  # any text that is not empty
NAMES = (*NAME, "X", "[X]")  # variables by name or as such; one stands for a list of one
VARIABLES = ("X", "[X]")
CASES = ("[case]", "case", *EMPTY)  # one stands for a list of one
POLICY = (*SOLUTION, "function")  # a function of a state and a step
ONE = ("float32",)  # numpy's numbers are numbers
CHANCE = ("0", *ONE)
POSITIVE = ("2.5", *ONE)
AT_LEAST_0 = ("0", *POSITIVE)
NUMBER = ("-1", *AT_LEAST_0)
LIMIT = ("10**400", "10**5000")  # whole numbers of any size
SEED = ("0", *LIMIT)
ZERO = ("0",)


def assert_junk_is_refused_briefly(call, arguments, accepted, more=None):
    """Each argument in turn as junk: a short FsmdpError, unless it is listed as acceptable."""
    taken = {}
    for argument in arguments:
        for name, junk in (JUNK | (more or {})).items():
            try:
                call(**(arguments | {argument: junk}))
            except FsmdpError as error:
                assert 10 < len(str(error)) < 500  # noqa: PT017
            else:
                taken.setdefault(argument, set()).add(name)
    assert taken == {argument: set(names) for argument, names in accepted.items()}
