"""What tests of public names throw at them, and what may come back."""

import math

import numpy as np

from fsmdp import ANY, Basis, Case, FsmdpError, Table, Variable, domains, solve_exactly

X = Variable("x", 2)
RING = domains.sysadmin(3)
EXACT = solve_exactly(RING)

JUNK = [
    *(None, True, -1, 0, 2.5, math.nan, math.inf, 1j, 10**400, 10**5000, np.float32(1)),
    *("", "x", "ab", "\ud800", b"x", [], {}, set(), {"x"}, {"x": 1}, [None], [[]], [["x"]]),
    *(X, Variable, Case, [X], [Case(ANY)], Case(ANY, ["x"]), Table("x", [0, 1]), Basis(), ANY),
    *(RING, EXACT, object(), slice(None), range(3), iter([]), lambda *_: 0),
    *(np.zeros(3), np.array("x"), np.array(1), np.array([object()]), np.ma.masked_array([1.0])),
]


def assert_junk_is_refused_briefly(call, arguments, more=()):
    """Each argument in turn as junk: the call works, or a short FsmdpError comes out."""
    for argument in arguments:
        for junk in [*JUNK, *more]:
            try:
                call(**(arguments | {argument: junk}))
            except FsmdpError as error:
                assert 10 < len(str(error)) < 500  # noqa: PT017
