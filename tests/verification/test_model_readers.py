"""A model file has one meaning: that of its JSON, for the library and for the checker."""

import json

import numpy as np
import pytest
from tests.joint_models import joint_model
from tests.model_readers import compare_readers, read_all, texts

import fsmdp
from fsmdp import ModelError
from fsmdp.io.models import from_bytes, to_dict
from fsmdp.verification import checker


def document():
    """Two rewards: a number, and two numbers in a list."""
    model = fsmdp.domains.sysadmin(2, horizon=2)
    data = to_dict(model)
    data["rewards"] = [
        {"name": "flat", "cases": [case([], 6)], "low": 0, "high": 10},
        {"name": "up", "cases": [case(["machine-0"], [0, 1])], "low": 0, "high": 1},
    ]
    return data


def case(parents, table):
    return {"actions": "any", "parents": parents, "table": table}


def text(*changes):
    found = json.dumps(document())
    for old, new in changes:
        assert found.count(old) == 1
        found = found.replace(old, new)
    return found.encode()


@pytest.mark.parametrize("key", ['"table"', '"t\\u0061ble"', '"\\u0074\\u0061\\u0062le"'])
@pytest.mark.parametrize("number", ["6", "9", "0", "6.0", "6e0"])
def test_a_table_is_what_json_says_however_its_key_is_written(key, number):
    model = from_bytes(text(('"table": 6', f"{key}: {number}")))
    assert model.rewards[0].cases[0].table == float(number)
    assert model.rewards[1].cases[0].table.tolist() == [0, 1]


@pytest.mark.parametrize("key", ['"table"', '"t\\u0061ble"'])
def test_a_list_is_read_however_the_key_is_written(key):
    model = from_bytes(text(('"table": [0, 1]', f"{key} : [0.25,\n 1]")))
    assert model.rewards[1].cases[0].table.tolist() == [0.25, 1]


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ('"table": 6', '"t\\u0061ble": 9999', "expected all within"),
        ('"table": 6', '"table": 6, "t\\u0061ble": 7', "'table' appears twice"),
        ('"table": [0, 1]', '"table": [0, 1], "t\\u0061ble": [1, 0]', "'table' appears twice"),
        ('"table": 6', '"table": NaN', "NaN or Infinity"),
        ('"table": [0, 1]', '"table": [0, NaN]', "NaN or Infinity"),
        ('"low": 0, "high": 10', '"low": NaN, "high": 10', "NaN or Infinity"),
        ('"low": 0, "high": 10', '"low": -Infinity, "high": 10', "NaN or Infinity"),
        ('"low": 0, "high": 10', '"low": 0, "high": 1e400', "finite"),
        ('"table": 6', '"table": 1e400', "finite"),
        ('"table": [0, 1]', '"table": [0, 1e400]', "finite"),
        ('"table": 6', '"table": ' + "9" * 400, "400 digits"),
        ('"table": 6', '"table": ' + "9" * 5000, "not JSON"),
        ('"table": 6', '"table": 6, "tables": [1]', "unknown key 'tables'"),
        ('"name": "flat"', '"name": "flat", "table": [1]', "unknown key 'table'"),
        ('"name": "flat"', '"name": "flat", "name": "x"', "'name' appears twice"),
        ('"name": "flat"', '"name": "fl\\ud800"', "string|surrogate"),
        ('"discount"', '"table": [1], "discount"', "unknown key 'table'"),
        ('"discount"', '"\\u0064iscount": 0.5, "discount"', "'discount' appears twice"),
    ],
)
def test_what_json_does_not_allow_or_nobody_declared_is_refused(old, new, match):
    content = text((old, new))
    with pytest.raises(ModelError, match=match):
        from_bytes(content)
    compare_readers(content)


def test_a_byte_order_mark_is_refused_by_both():
    content = b"\xef\xbb\xbf" + text()
    with pytest.raises(ModelError, match="BOM"):
        from_bytes(content)
    with pytest.raises(checker.BadInputError, match="BOM"):
        checker.read_model(content)


def test_a_negative_zero_is_zero_for_both():
    assert compare_readers(text(('"table": [0, 1]', '"table": [-0.0, 1]'))) == ("read", "read")


def test_names_that_only_look_alike_are_two_names_for_both():
    data = json.dumps(document())
    data = data.replace("machine-0", "caf\\u00e9").replace("machine-1", "cafe\\u0301")
    assert compare_readers(data.encode()) == ("read", "read")
    assert len({v.name for v in from_bytes(data.encode()).variables}) == 2


def test_half_of_a_surrogate_pair_is_no_name_for_both():
    content = json.dumps(document()).replace("machine-0", "\\ud800").encode()
    library, theirs = compare_readers(content)
    assert "unicode" in library
    assert "expected a name" in theirs


def test_a_digest_of_other_content_is_refused_by_both():
    content = json.dumps({"digest": "0" * 63 + "1", **document()}).encode()
    library, theirs = compare_readers(content)
    assert "it was changed since it was written" in library
    assert "changed since it was written" in theirs


def test_wrong_and_odd_texts_have_one_meaning():
    rng = np.random.default_rng(1)
    for model in (fsmdp.domains.sysadmin(2, horizon=2), joint_model(4)):
        counts, _ = read_all(texts(model, rng, 60))
        assert counts[True, False] == 0
        assert counts[True, True] > 10 < counts[False, False]
