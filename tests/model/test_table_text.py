"""Tables of model files as text: read exactly as JSON is, and refused before they are built."""

import json
import random
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fsmdp
from fsmdp import ModelError
from fsmdp.foundation.disk import seal
from fsmdp.io import models as table_text
from fsmdp.io.models import TableText, from_bytes, nested_array, parse_document, to_dict


def read_as_json(text, sizes):
    """The numbers of a table, or None if the text is not one of this shape."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    level = [found]
    for size in sizes:
        if any(type(one) is not list or len(one) != size for one in level):
            return None
        level = [entry for one in level for entry in one]
    if any(type(one) not in (int, float) for one in level):
        return None
    return [float(one) for one in level]


def read_as_text(text, sizes):
    try:
        table = parse_document(b'{"table":' + text + b"}")["table"]
        if isinstance(table, TableText):
            return np.ravel(table.read(sizes, "here")).tolist()
        return np.ravel(nested_array(table, sizes, "here")).tolist()
    except ValueError:  # ModelError is one
        return None


def nested(sizes, rng):
    if not sizes:
        return rng.choice([0, 1, -2, 0.5, 1e-300, 3.25e7, 2**60, 0.1])
    return [nested(sizes[1:], rng) for _ in range(sizes[0])]


@given(seed=st.integers(0, 10**9))
@settings(max_examples=300, deadline=None)
def test_a_table_is_read_as_json_reads_it_or_refused_by_both(seed):
    rng = random.Random(seed)
    sizes = [rng.randint(1, 3) for _ in range(rng.randint(0, 4))]
    text = json.dumps(nested(sizes, rng), indent=rng.choice([None, None, 1]))
    for _ in range(rng.randint(0, 3)):
        at = rng.randrange(len(text) + 1)
        match rng.randrange(3):
            case 0:
                text = text[:at] + rng.choice("[],1 .-e\n0") + text[at:]
            case 1:
                text = text[:at] + text[at + 1 :]
            case 2:
                text = text[:at] + rng.choice("[],1 ") + text[at + 1 :]
    assert read_as_text(text.encode(), sizes) == read_as_json(text, sizes)


def test_long_tables_are_read_in_chunks(monkeypatch):
    monkeypatch.setattr(table_text, "CHUNK", 7)
    rng = np.random.default_rng(0)
    table = rng.random((5, 4, 3)).tolist()
    for indent in (None, 1):
        text = json.dumps(table, indent=indent).encode()
        assert read_as_text(text, [5, 4, 3]) == np.ravel(table).tolist()
    assert read_as_text(b"[[1,2],[3,]]", [2, 2]) is None


def test_a_variable_may_be_named_table():
    case = fsmdp.Case(fsmdp.ANY, ["table"], [[0.5, 0.5], [0.25, 0.75]])
    odd = 'x\\"table": [1, 2], "'
    model = fsmdp.FactoredMDP(
        [fsmdp.Variable("table", 2), fsmdp.Variable(odd, 2)],
        ["table"],
        [fsmdp.Conditional("table", [case]), fsmdp.Conditional(odd, [case])],
        [],
        3,
        {"table": [0.25, 0.75], odd: 1},
    )
    again = from_bytes(seal(to_dict(model)))
    assert to_dict(again) == to_dict(model)


def big(**entries):
    document = to_dict(fsmdp.domains.sysadmin(2))
    document.update(entries)
    return document


def table_of(table):
    document = big()
    document["conditionals"][0]["cases"][0]["table"] = table
    return document


MANY = 150_000
TOO_LARGE = {
    "variables": lambda: big(variables=[{"name": f"x{i}", "size": 2} for i in range(MANY)]),
    "rewards": lambda: big(rewards=[{}] * MANY),
    "actions": lambda: big(actions=["a"] * (2**21 + 1)),
    "starts": lambda: big(initial={"machine-0": [0] * (2**21 + 1)}),
    "table of pairs": lambda: table_of([[0.5, 0.5]] * 10**6),
    "table of empty lists": lambda: table_of([[]] * 10**6),
    "long table": lambda: table_of([0.5] * 10**6),
    "table with text": lambda: table_of([[0.5, 0.5]] * 10**6 + ["x"]),
    "table with no number": lambda: table_of([[0.5, 0.5]] * 10**6 + [float("nan")]),
}


@pytest.mark.parametrize("kind", TOO_LARGE)
def test_what_is_too_large_is_refused_before_it_is_built(kind):
    content = json.dumps(TOO_LARGE[kind](), separators=(",", ":")).encode()
    tracemalloc.start()
    try:
        with pytest.raises(ModelError):
            from_bytes(content)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 5 * len(content) + 10**6, f"{most} bytes for a file of {len(content)}"


def test_a_large_table_of_the_right_shape_is_read_within_a_small_multiple_of_its_text():
    rng, parents = np.random.default_rng(0), 15
    chances = rng.random((2,) * parents)
    names = [f"x{i}" for i in range(parents)]
    wide = fsmdp.Case(fsmdp.ANY, names, np.stack([chances, 1 - chances], -1))
    model = fsmdp.FactoredMDP(
        [fsmdp.Variable(name, 2) for name in names],
        ["wait"],
        [
            fsmdp.Conditional("x0", [wide]),
            *(fsmdp.Conditional(n, [fsmdp.Case(fsmdp.ANY, [], [0.5, 0.5])]) for n in names[1:]),
        ],
        [],
        3,
        [0] * parents,
    )
    content = seal(to_dict(model))
    tracemalloc.start()
    again = from_bytes(content)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert to_dict(again) == to_dict(model)
    assert most < 8 * len(content)


def test_a_model_that_could_not_be_read_again_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(table_text, "MOST_OBJECTS", 5)
    with pytest.raises(ModelError, match=r"cannot write .*objects .*expected at most 5"):
        fsmdp.save(fsmdp.domains.sysadmin(2), tmp_path / "x.json")
    assert not list(tmp_path.iterdir())
