"""Model files: exact round trips, and nothing but ModelError for a bad file."""

import contextlib
import json
import math
import os
import random

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fsmdp
from fsmdp import ModelError
from fsmdp.io.models import from_bytes, schema, to_dict


def content(model):
    return json.dumps(to_dict(model)).encode()


@given(seed=st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_round_trip_is_exact(tmp_path_factory, seed):
    model = fsmdp.domains.random_model(seed)
    path = tmp_path_factory.mktemp("files") / "model.json"
    fsmdp.save(model, path)
    again = fsmdp.load(path)
    assert to_dict(again) == to_dict(model)
    assert list(path.parent.iterdir()) == [path]


@given(seed=st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_saved_files_follow_the_published_schema(seed):
    jsonschema.validate(to_dict(fsmdp.domains.random_model(seed)), schema())


def test_the_schema_that_is_shipped_is_the_one_that_is_used():
    shipped = json.loads(schema_path().read_text())
    assert shipped == schema(), "run: python -m fsmdp.io.models > src/fsmdp/model/schema.json"


def schema_path():
    from importlib.resources import files

    return files("fsmdp.model") / "schema.json"


def changed(change):
    description = to_dict(fsmdp.domains.sysadmin(3))
    change(description)
    return json.dumps(description).encode()


def in_first_case(**entries):
    return changed(lambda d: d["conditionals"][0]["cases"][1].update(entries))


HOSTILE = {
    "empty": (b"", "not JSON: Expecting value"),
    "not JSON": (b"[[[", "not JSON: Expecting value"),
    "not text": (b"\xff\xfe", "expected text in UTF-8, found byte 0"),
    "not an object": (b"[]", r"file: expected an object, found \[\]"),
    "missing keys": (b"{}", "format: Field required"),
    "deep nesting": (b"[" * 10**6 + b"]" * 10**6, "nested too deeply"),
    "deeply nested table": (
        in_first_case(table=json.loads("[" * 90 + "]" * 90)),
        "axis 0, found a list of 1",
    ),
    "wrong version": (changed(lambda d: d.update(version=2)), "version: expected 1"),
    "wrong format": (changed(lambda d: d.update(format="other")), "format"),
    "unknown key": (
        changed(lambda d: d.update(colour="red")),
        "unknown key 'colour'; expected 'format'",
    ),
    "sizes that multiply to 2^60": (
        changed(lambda d: [v.update(size=2**16) for v in d["variables"]]),
        "expected a table of shape",
    ),
    "size of 2^60": (changed(lambda d: d["variables"][0].update(size=2**60)), "65536"),
    "wrong shape": (in_first_case(table=[1.0, 0.0]), "expected a table of shape"),
    "ragged table": (
        in_first_case(table=[[1.0], [0.5, 0.5]]),
        "lists of 2 at axis 1, found a list of 1",
    ),
    "not a number": (in_first_case(table=[[[math.nan, 1]] * 2] * 2), "finite"),
    "infinite": (in_first_case(table=[[[math.inf, 1]] * 2] * 2), "finite"),
    "text for numbers": (in_first_case(table="abc"), "lists of 2 at axis 0, found 'abc'"),
    "truth values for numbers": (
        in_first_case(table=[[[True, False]] * 2] * 2),
        "expected numbers .*found True",
    ),
    "object for numbers": (in_first_case(table={"a": 1}), "expected a table of shape"),
    "huge number": (in_first_case(table=[[[10**400, 1]] * 2] * 2), "401 digits"),
    "half a step": (changed(lambda d: d.update(horizon=2.5)), "horizon"),
    "text for a horizon": (changed(lambda d: d.update(horizon="ten")), "horizon"),
    "unknown action": (in_first_case(actions=["fly"]), "unknown action 'fly'"),
    "unknown parent": (in_first_case(parents=["x", "y"]), "unknown variable 'x'"),
    "one level too many": (
        in_first_case(table=[[[[0.5, 0.5]] * 2] * 2] * 2),
        r"expected numbers at the innermost level \(shape \(2, 2, 2\)\), found \[0.5, 0.5\]",
    ),
    "actions of another kind": (
        in_first_case(actions="all"),
        r"conditionals\[0\].cases\[1\].actions: expected \"any\" or a list of action names, found",
    ),
    "initial of another kind": (
        changed(lambda d: d.update(initial=[1, 1, 1])),
        r"initial: expected an object by variable name, found \[1, 1, 1\]",
    ),
    "initial by truth": (
        changed(lambda d: d["initial"].update({"machine-0": True})),
        "initial: expected a value or a list of probabilities for 'machine-0', found True",
    ),
    "truth among probabilities": (
        changed(lambda d: d["initial"].update({"machine-0": [True, 0.0]})),
        r"list of probabilities for 'machine-0', found \[True, 0.0\]",
    ),
    "version by truth": (changed(lambda d: d.update(version=True)), "version: .*found True"),
    "version of halves": (changed(lambda d: d.update(version=1.0)), "version: .*found 1.0"),
    "endless horizon": (changed(lambda d: d.update(horizon=10**7)), "horizon: .*10000000"),
    "number of 5,000 digits": (
        content(fsmdp.domains.sysadmin(3)).replace(b'"horizon": 10', b'"horizon": ' + b"9" * 5000),
        "not JSON: Exceeds the limit",
    ),
    "key twice": (
        content(fsmdp.domains.sysadmin(3)).replace(b'"discount": 1.0', b'"horizon": 11'),
        "key 'horizon' appears twice",
    ),
    "nameless reward": (changed(lambda d: d["rewards"][0].update(name="")), r"rewards\[0\].name"),
    "half a surrogate pair": (
        changed(lambda d: d["actions"].append("\ud800")),
        r"actions\[4\]: Input should be a valid string",
    ),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_file_is_refused_clearly(kind, tmp_path):
    bad, message = HOSTILE[kind]
    path = tmp_path / "bad.json"
    path.write_bytes(bad)
    with pytest.raises(ModelError, match=message) as caught:
        fsmdp.load(path)
    assert str(path) in str(caught.value)


@given(seed=st.integers(0, 10**9))
@settings(max_examples=150, deadline=5000)
def test_a_corrupted_file_loads_or_raises_model_error_and_nothing_else(seed):
    rng = random.Random(seed)
    if rng.random() < 0.5:
        bad = corrupt_bytes(content(fsmdp.domains.sysadmin(3)), rng)
    else:
        description = to_dict(fsmdp.domains.random_model(rng.randrange(100)))
        for _ in range(rng.randint(1, 3)):
            corrupt_value(description, rng)
        bad = json.dumps(description).encode()
    with contextlib.suppress(ModelError):
        assert from_bytes(bad).variables


def corrupt_bytes(good, rng):
    changed = bytearray(good)
    for _ in range(rng.randint(1, 5)):
        at = rng.randrange(len(changed))
        match rng.randrange(3):
            case 0:
                changed[at] = rng.randrange(256)
            case 1:
                del changed[at : at + rng.randint(1, 20)]
            case 2:
                changed[at:at] = changed[rng.randrange(len(changed)) :][: rng.randint(1, 20)]
    return bytes(changed)


WEIRD = [None, True, -1, 0, 2, 2**70, 1e308, -0.5, math.nan, "", "x", [], {}, [[]], [1], {"a": 1}]


def corrupt_value(node, rng):
    """Replace, drop, add or copy something somewhere inside."""
    while True:
        keys = list(node) if isinstance(node, dict) else range(len(node))
        if not keys:
            return
        key = rng.choice(list(keys))
        child = node[key]
        if isinstance(child, dict | list) and child and rng.random() < 0.8:
            node = child
            continue
        match rng.randrange(3):
            case 0:
                node[key] = rng.choice(WEIRD)
            case 1:
                del node[key]
            case 2 if isinstance(node, list):
                node.append(child)
            case _:
                node["extra" if isinstance(node, dict) else 0] = rng.choice(WEIRD)
        return


def test_saving_something_else_is_refused(tmp_path):
    with pytest.raises(ModelError, match="expected a FactoredMDP, found int"):
        fsmdp.save(3, tmp_path / "x.json")


def test_missing_and_unwritable_files_say_so(tmp_path):
    with pytest.raises(ModelError, match=r"cannot read .*No such file"):
        fsmdp.load(tmp_path / "none.json")
    with pytest.raises(ModelError, match=r"cannot read .*directory"):
        fsmdp.load(tmp_path)
    with pytest.raises(ModelError, match="cannot write"):
        fsmdp.save(fsmdp.domains.sysadmin(2), tmp_path / "no" / "x.json")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_is_refused_without_waiting_for_a_writer(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelError, match="pipe or a device, expected a regular file"):
        fsmdp.load(tmp_path / "pipe")


def test_a_device_is_refused():
    with pytest.raises(ModelError, match="pipe or a device"):
        fsmdp.load(os.devnull)


ODD_PATHS = ["", "/", ".", "..", "a\0b", "x" * 5000, None, 3, b"x", ["x"]]


@pytest.mark.parametrize("path", ODD_PATHS, ids=lambda path: repr(path)[:10])
def test_odd_paths_are_refused_for_reading_and_writing(path):
    with pytest.raises(ModelError, match="cannot read") as caught:
        fsmdp.load(path)
    assert len(str(caught.value)) < 400
    with pytest.raises(ModelError, match="cannot write") as caught:
        fsmdp.save(fsmdp.domains.sysadmin(2), path)
    assert len(str(caught.value)) < 400


MANY = 200_000

FLOODS = {
    "unknown keys": changed(lambda d: d.update({f"k{i}": 0 for i in range(MANY)})),
    "bad variables": changed(lambda d: d["variables"].extend([{}] * MANY)),
    "bad cases": changed(lambda d: d["conditionals"][0]["cases"].extend([0] * MANY)),
    "bad names": in_first_case(parents=[0] * MANY),
    "bad starts": changed(lambda d: d["initial"].update({f"k{i}": {} for i in range(MANY)})),
    "parents many times": in_first_case(parents=["machine-0"] * MANY),
    "a table too long": in_first_case(table=[[[0.5, 0.5]] * MANY] * 2),
    "empty lists": in_first_case(table=[[]] * MANY),
    "millions of empty lists": b"[" + b"[]," * 2**22 + b"0]",
    "long name": changed(lambda d: d["actions"].append("x" * 10**7)),
}


@pytest.mark.parametrize("kind", FLOODS)
def test_a_flood_of_mistakes_is_refused_at_the_first_with_a_short_message(kind):
    if kind == "long name":
        assert len(from_bytes(FLOODS[kind]).actions[-1]) == 10**7
        return
    with pytest.raises(ModelError) as caught:
        from_bytes(FLOODS[kind])
    assert len(str(caught.value)) < 500


def test_a_file_above_the_limit_is_not_read(tmp_path, monkeypatch):
    path = tmp_path / "big.json"
    fsmdp.save(fsmdp.domains.sysadmin(2), path)
    monkeypatch.setattr("fsmdp.io.models.LARGEST_FILE", 10)
    with pytest.raises(ModelError, match=r"cannot read .*expected at most 10"):
        fsmdp.load(path)
    with pytest.raises(ModelError, match=r"cannot write .*expected at most 10"):
        fsmdp.save(fsmdp.domains.sysadmin(2), path)
