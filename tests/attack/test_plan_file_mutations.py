"""Thousands of changed plan files: none is proved falsely, and none is read in two ways.

Every file is read by the checker and by the library. Where the checker says PROVED, all that the
loaded plan claims is compared with exact values; where both read a file, they read the same.
"""

import io
import json
import struct
import warnings
import zipfile
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import islice, product

import numpy as np
import pytest

import fsmdp
from fsmdp import domains
from fsmdp.foundation.disk import (
    EPOCH,
    PRIVATE,
    UNIX,
    array_bytes,
    digest_arrays,
    pack_json,
    read_arrays,
    seal,
)
from fsmdp.io.models import to_dict
from fsmdp.reductions.reduction import unchanged
from fsmdp.solver.search.search import search
from fsmdp.solver.state import proof_by_search
from fsmdp.verification import checker
from fsmdp.verification.values import start_values
from tests.conditioned_models import shop
from tests.mutations import damaged, mutated_data

ROUNDING = 1e-9
"""Of exact values in floating point, against which claims are compared."""


def searched(model):
    """A plan with the proof of a search that did not look at all states."""
    plan = fsmdp.plan(model, fsmdp.Basis.singles(model), method="programs")
    found = search(model, plan.bound.basis, plan.bound.weights, trials=5)
    proof = proof_by_search(model, unchanged(model), found, found.upper_bound)
    return replace(plan, bound=replace(plan.bound, at_start=(proof,)))


def by_programs(model):
    return fsmdp.plan(model, method="programs")


def by_solver(model):
    return fsmdp.plan(model, rounds=1)


FINITE, ENDLESS = {"horizon": 3}, {"horizon": None, "discount": 0.9}
PROBLEMS = {
    "weights": (lambda: domains.sysadmin(3, **FINITE), by_programs),
    "all states": (lambda: domains.sysadmin(3, **FINITE), by_solver),
    "all states, endless": (lambda: domains.sysadmin(2, **ENDLESS), by_solver),
    "listed states": (lambda: domains.sysadmin(3, **FINITE), searched),
    "listed states, endless": (lambda: domains.sysadmin(2, **ENDLESS), searched),
    "conditions": (lambda: shop(**FINITE), by_programs),
    "conditions, all states": (lambda: shop(**FINITE), by_solver),
    "conditions, endless": (lambda: shop(**ENDLESS), by_solver),
    "joint actions": (lambda: domains.sysadmin(2, administrators=1, **FINITE), by_solver),
}


class Attack:
    """A model, an honest plan file, and what came of the changed ones."""

    def __init__(self, name, folder):
        make, solve = PROBLEMS[name]
        self.model = make()
        self.path = folder / "plan.npz"
        solve(self.model).save(self.path)
        self.content = self.path.read_bytes()
        self.arrays = read_arrays(self.path, 2**26, "plan", "none")
        self.about = json.loads(self.arrays["about"].tobytes())
        self.mine = checker.read_model(seal(to_dict(self.model)))
        solution = fsmdp.solve_exactly(self.model)
        steps = range(1, (self.model.horizon or 1) + 1)
        states = [*product(*(range(size) for size in self.model.sizes))]
        self.values = {(s, step): solution.value(s, step) for s in states for step in steps}
        self.best = solution.start_value
        self.counts = Counter()
        self.slack = ROUNDING * max(1.0, *map(abs, self.values.values()))

    def judge(self, content, label):
        """Read a file twice; complain of a false proof, or of two readings."""
        claim = verdict = plan = None
        with suppress(checker.BadInputError):
            claim = checker.read_claim(content, self.mine)
            verdict = checker.check(self.mine, claim, start_values=start_values)
        self.path.write_bytes(content)
        with suppress(fsmdp.ModelError):
            plan = fsmdp.load_plan(self.path)
        self.counts["refused by both" if claim is None and plan is None else "read"] += 1
        if verdict is not None and verdict.proved:
            self.counts["proved"] += 1
            assert verdict.best >= Fraction(self.best - self.slack), label
            if plan is not None:
                self.counts["proved and loaded"] += 1
                self.assert_claims_hold(plan, label)
        if claim is not None and plan is not None:
            self.assert_same(claim, plan, label)

    def assert_claims_hold(self, plan, label):
        assert plan.upper_bound >= self.best - self.slack, label
        assert plan.bound.upper_bound >= self.best - self.slack, label
        assert plan.certificate.upper_bound >= self.best - self.slack, label
        assert plan.bound.trivial >= self.best - self.slack, label
        for (state, step), value in self.values.items():
            assert plan.value(state, step) >= value - self.slack, label
            assert plan.bound.value(state, step) >= value - self.slack, label
        if plan.incumbent is not None:
            assert not plan.incumbent.exact, label
            assert plan.incumbent.lower_limit is None, label

    def assert_same(self, claim, plan, label):
        self.counts["read by both"] += 1
        bound = plan.bound
        assert claim.upper_bound == Fraction(bound.certificate.upper_bound), label
        least = min(
            claim.upper_bound, claim.upper_bound if claim.at_start is None else claim.at_start
        )
        assert least == Fraction(plan.upper_bound), label
        rows = bound.weights if plan.horizon is None else bound.weights[:-1]
        assert [[*map(Fraction, row)] for row in rows.tolist()] == [*map(list, claim.weights)], (
            label
        )
        tables = [[*map(Fraction, one.values.ravel().tolist())] for one in bound.basis]
        assert tables == [[*one.numbers] for one in claim.functions], label
        assert [one.scope for one in bound.basis] == [one.axes for one in claim.functions], label
        assert len(bound.values.invariants) == len(claim.invariants), label
        proof, start = next(iter(bound.at_start), None), claim.start
        assert (proof is None) == (start is None), label
        if proof is not None:
            states = None if proof.states is None else proof.states.tobytes()
            values = None if proof.values is None else proof.values.tobytes()
            assert (states, values) == (start.states, start.values), label
            boxes = [(one.variables, one.values, one.kept) for one in proof.boxes]
            assert boxes == [(one.variables, one.values, one.kept) for one in start.boxes], label

    def sealed(self, arrays, **options):
        """A file of arrays with the right digest."""
        return archive(members(arrays | {"digest": np.array(digest_arrays(arrays))}), **options)


def members(arrays):
    return [(f"{name}.npy", array_bytes(array)) for name, array in arrays.items()]


def archive(parts, **changes):
    """An archive as the library writes it, but for changed fields of its entries."""
    content = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(content, "w") as packed:
        warnings.simplefilter("ignore")  # of names that are there twice
        for name, data in parts:
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.create_system, entry.external_attr = UNIX, PRIVATE
            for field, value in changes.items():
                setattr(entry, field, value)
            packed.writestr(entry, data)
    return content.getvalue()


def archives(attack, rng):
    """Changes of the archive: members twice, missing, renamed, more; fields, comments, gaps."""
    parts = members(attack.arrays | {"digest": np.array(digest_arrays(attack.arrays))})
    lower = dict(attack.about, upper_bound=attack.about["upper_bound"] - 1)
    fake = array_bytes(pack_json(lower))
    for name, data in (("about.npy", fake), ("about", fake), ("About.npy", fake), ("x.npy", fake)):
        yield f"{name} first", archive([(name, data), *parts])
        yield f"{name} last", archive([*parts, (name, data)])
    for at, (name, data) in enumerate(parts):
        yield f"without {name}", archive(parts[:at] + parts[at + 1 :])
        yield f"{name} twice", archive([*parts, (name, data)])
        for other in (name[:-4], name.upper(), "./" + name, name + "\0", "policy/" + name):
            yield f"{name!r} as {other!r}", archive([*parts[:at], (other, data), *parts[at + 1 :]])
        for change in (data + b"\0", data[:-1], data + fake, data.replace(b"\x01\0v", b"\x02\0v")):
            yield f"{name} longer", archive([*parts[:at], (name, change), *parts[at + 1 :]])
    for field, value in (("comment", b"c"), ("extra", b"\1\0\0\0"), ("external_attr", 1)):
        yield field, archive(parts, **{field: value})
    good = archive(parts)
    for where in (0, good.find(b"PK\1\2"), good.find(b"PK\5\6"), len(good)):
        for more in (b"\0", b"PK\3\4", fake, good):
            yield f"more at {where}", good[:where] + more + good[where:]
    end = good.find(b"PK\5\6")
    for at in range(end, len(good)):
        for flip in (1, 0x80):
            yield f"end {at}", good[:at] + bytes([good[at] ^ flip]) + good[at + 1 :]
    start = good.find(b"PK\1\2")
    for at in rng.integers(start, end, size=100):
        yield f"directory {at}", good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :]


def headers(attack, rng):
    """Changes of array headers, with lengths and checks that fit."""
    parts = members(attack.arrays | {"digest": np.array(digest_arrays(attack.arrays))})
    for at, (name, data) in enumerate(parts):
        (length,) = struct.unpack("<H", data[8:10])
        text, numbers = data[10 : 10 + length], data[10 + length :]
        for old, new in (
            (b"False", b"True "),
            (b"(", b"(1, "),
            (b"|u1", b"|i1"),
            (b"<f8", b"<i8"),
            (b"<f8", b">f8"),
            (b"'shape'", b"'SHAPE'"),
            (b"}", b"}#"),
            (b", }", b", 'shape': (1,), }"),
            (b"\n", b" "),
            (b" \n", b"\n\n"),
            (b"  ", b"\t "),
        ):
            for change in (text.replace(old, new, 1), text.replace(old, new, 1)[:length]):
                header = data[:8] + struct.pack("<H", len(change)) + change
                yield (
                    f"{name} {old} {new}",
                    archive([*parts[:at], (name, header + numbers), *parts[at + 1 :]]),
                )


def texts(attack, rng):
    """Changes of the description's text that JSON readers may take in several ways."""
    text = json.dumps(attack.about)
    bound = attack.about["upper_bound"]
    for key, value in attack.about.items():
        for other in (bound - 1, None, 0, [], "x"):
            yield f"{key} twice", text[:-1] + f", {json.dumps(key)}: {json.dumps(other)}}}"
            yield f"{key} first", f"{{{json.dumps(key)}: {json.dumps(other)}, " + text[1:]
        quoted, escaped = json.dumps(key), f'"\\u{ord(key[0]):04x}{key[1:]}"'
        yield f"{key} escaped", text.replace(quoted, escaped, 1)
        yield f"{key} escaped, twice", text[:-1] + f", {escaped}: {json.dumps(value)}}}"
    number = json.dumps(bound)
    for other in (
        "NaN",
        "Infinity",
        "-Infinity",
        "1e400",
        "-1e400",
        "1e-400",
        "true",
        "1" * 400,
        "1.0e0",
        "-0",
        "9007199254740993",
        "9007199254740993.0",
        "01",
        "+1",
        ".5",
        "0x10",
        "1_0",
        '"1"',
    ):
        yield f"number {other}", text.replace(number, other)
    for more in (
        "\ufeff" + text,
        text + " ",
        text + "x",
        " " + text,
        text + "\0",
        text.replace('"', "'"),
    ):
        yield "around", more
    yield "comment", text[:-1] + "/**/}"
    yield "comma", text[:-1] + ",}"


def described(attack, text):
    """A file with a description in place of its own, and the right digest."""
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return attack.sealed(attack.arrays | {"about": np.frombuffer(data, dtype=np.uint8)})


def shifted(value, amount):
    """Every number of plain data moved, as far as it is a float."""
    if isinstance(value, float):
        return value + amount
    if isinstance(value, list):
        return [shifted(one, amount) for one in value]
    return value


def claims(attack, rng):
    """Changes of what is claimed, with everything else in order."""
    for field in ("upper_bound", "at_start", "bound_weights", "functions", "discount"):
        for amount in (1e-12, 1e-9, 1e-6, 1e-3, 1.0, 1e3, 1e20):
            for sign in (-1, 1):
                yield (
                    f"{field} {sign * amount}",
                    {field: shifted(attack.about[field], sign * amount)},
                )
    weights = np.array(attack.about["bound_weights"])
    for _ in range(60):
        noise = rng.normal(size=weights.shape) * 10.0 ** rng.integers(-13, 3)
        noise *= rng.random(weights.shape) < 0.3
        yield "noise", {"bound_weights": (weights + noise).tolist()}
    # Terms that cancel: what is proved in fractions must hold as floats are added up, too.
    for size in (1e8, 1e16, 1e20, 1e300):
        rows = [[*row, size * bool(any(row)), -size * bool(any(row))] for row in weights.tolist()]
        yield (
            f"cancelling {size}",
            {
                "bound_weights": rows,
                "functions": [*attack.about["functions"], [1.0], [1.0]],
                "scopes": [*attack.about["scopes"], [], []],
            },
        )
    names = range(len(attack.model.sizes))
    for variable in names:
        for allowed in ([0, 1], [1, 0], [0, 0]):
            one = {"scope": [variable], "allowed": allowed}
            yield "invariant", {"invariants": [one], "restrictions": [[0, []]]}
        for least, most in ((0, 0), (1, 1), (0, 1)):
            one = {"scope": [variable], "counts": [[0, 1]], "least": least, "most": most}
            yield "sum", {"invariants": [one], "restrictions": [[0, []]]}
    boxes = [
        {"variables": [v], "values": [values], "kept": kept}
        for v in names
        for values in ([0], [1], [0, 1])
        for kept in ([v], list(names))
    ]
    for states in ("all", "listed", "some"):
        for chosen in ([], boxes[:1], boxes[::2], boxes):
            for at_start in (attack.best - 0.1, attack.best * 0.5 - 1, attack.best + 0.1):
                proof = {"states": states, "boxes": chosen}
                yield "start", {"at_start": at_start, "start_proof": proof, "proof": "it"}
    yield "no proof", {"start_proof": None}
    yield "no claim", {"at_start": None}


def proofs(attack, rng):
    """Changes of the states and values that prove a bound at the start."""
    for name in ("states", "values"):
        array = attack.arrays.get(name)
        if array is None:
            continue
        for _ in range(60):
            changed = array.copy()
            place = tuple(rng.integers(n) for n in array.shape)
            if name == "states":
                changed[place] ^= 1
            else:
                changed[place] += rng.choice([-1e3, -1, -1e-6, -1e-9, 1e-6, 1e3, np.nan, np.inf])
            yield f"{name} {place}", {name: changed}
        for label, changed in (
            ("half", array[: len(array) // 2]),
            ("reversed", array[::-1].copy()),
            ("twice", np.concatenate([array, array])),
            ("none", array[:0]),
            ("zeros", np.zeros_like(array)),
            ("kind", array.astype(np.int64)),
        ):
            yield f"{name} {label}", {name: changed}
    if "values" in attack.arrays:
        for amount in (1e-9, 1e-6, 1.0, 1e6):
            yield f"values - {amount}", {"values": attack.arrays["values"] - amount}


def changed_files(attack, rng):
    """Pairs of a label and a file."""
    for content in damaged(attack.content, rng, 300):
        yield "bytes", content
    for label, content in archives(attack, rng):
        yield f"archive: {label}", content
    for label, content in headers(attack, rng):
        yield f"header: {label}", content
    for label, text in texts(attack, rng):
        yield f"text: {label}", described(attack, text)
    for label, change in claims(attack, rng):
        yield f"claim: {label}", described(attack, json.dumps(attack.about | change))
    for label, change in proofs(attack, rng):
        yield f"proof: {label}", attack.sealed(attack.arrays | change)
        if attack.about["at_start"] is not None:
            lower = {"about": pack_json(attack.about | {"at_start": attack.best - 0.1})}
            yield f"proof, lower: {label}", attack.sealed(attack.arrays | change | lower)
    for label, changed in mutated_data(attack.about):
        yield f"data: {label}", described(attack, json.dumps(changed))


def run(name, folder, every):
    """Judge every so many of the changed files; what came of them."""
    attack = Attack(name, folder)
    attack.judge(attack.content, "honest")
    assert attack.counts["proved and loaded"] == 1
    files = changed_files(attack, np.random.default_rng(0))
    for label, content in islice(files, 0, None, every):
        attack.judge(content, label)
    return attack.counts


@pytest.mark.parametrize("name", ["weights", "listed states, endless"])
def test_some_changed_plans_are_not_proved_falsely_or_read_in_two_ways(name, tmp_path):
    counts = run(name, tmp_path, 101)
    assert counts["refused by both"] > 10
    assert counts["read by both"] > 1


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_no_changed_plan_is_proved_falsely_or_read_in_two_ways(name, tmp_path, capsys):
    counts = run(name, tmp_path, 1)
    assert counts["refused by both"] > 1000
    assert counts["proved and loaded"] > 100
    with capsys.disabled():
        total = counts["read"] + counts["refused by both"]
        print(f"\n{name}: {total} plan files, {dict(counts)}")
