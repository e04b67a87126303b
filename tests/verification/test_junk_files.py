"""Files that are damaged, hostile or wrong: one line that says so, and nothing worse."""

import io
import json
import re
import warnings
import zipfile

import numpy as np
import pytest
from checked import model_bytes, plan_bytes
from tests.mutations import damaged, mutated_arrays, mutated_data

import fsmdp
from fsmdp import domains
from fsmdp.model.files import from_bytes, to_dict
from fsmdp.verification import checker

READ = ("about", "functions", "bound_weights")


@pytest.fixture(scope="module")
def model():
    return domains.sysadmin(3, horizon=2)


@pytest.fixture(scope="module")
def plan(model):
    return plan_bytes(fsmdp.plan(model, method="joint"))


def parts_of(plan):
    with zipfile.ZipFile(io.BytesIO(plan)) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def packed(parts, **options):
    """An archive of parts by name, or of pairs of a name (or its entry) and content."""
    content = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(content, "w", **options) as archive:
        warnings.simplefilter("ignore")  # of names that are there twice
        for name, part in parts.items() if isinstance(parts, dict) else parts:
            archive.writestr(name, part)
    return content.getvalue()


def array_bytes(array, **options):
    content = io.BytesIO()
    np.lib.format.write_array(content, np.asarray(array), **options)
    return content.getvalue()


def with_header(text, body=b"", version=1):
    """An array file with any text as its header."""
    length = len(text).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + length + text.encode() + body


def refused(content, match):
    with pytest.raises(checker.BadInputError, match=match) as caught:
        checker.read_claim(content)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def judge(model_content, plan_content):
    """A verdict, or the line that refuses the files."""
    try:
        model, claim = checker.read_model(model_content), checker.read_claim(plan_content)
        return checker.check(model, claim)
    except checker.BadInputError as error:
        return str(error)


def test_cut_and_flipped_files_are_refused_or_as_good_as_before(model, plan):
    rng = np.random.default_rng(0)
    content = model_bytes(model)
    for wrong in damaged(plan, rng, 300):
        judge(content, wrong)
    for wrong in damaged(content, rng, 300):
        assert isinstance(judge(wrong, plan), str) or wrong == content
    refused(plan[: len(plan) // 2], "damaged, or not a plan")
    refused(b"", "damaged, or not a plan")


def test_wrong_arrays_are_refused_or_judged(model, plan):
    rng = np.random.default_rng(0)
    content, parts = model_bytes(model), parts_of(plan)
    with np.load(io.BytesIO(plan)) as stored:
        arrays = {name: stored[name] for name in READ}
    for name, array in arrays.items():
        refused(packed({n: p for n, p in parts.items() if n != f"{name}.npy"}), "found 0 times")
        for label, wrong in mutated_arrays(array, rng):
            changed = packed(parts | {f"{name}.npy": array_bytes(wrong)})
            verdict = judge(content, changed)
            if not isinstance(verdict, str) and name == "bound_weights" and verdict.proved:
                # Whatever was done to the weights, they are a bound and were proved to be one.
                assert verdict.bound <= verdict.claim.upper_bound, label


def test_wrong_headers_are_refused_or_judged(model, plan):
    content, parts = model_bytes(model), parts_of(plan)
    with np.load(io.BytesIO(plan)) as stored:
        about = json.loads(stored["about"].tobytes())
    kept = {name: about[name] for name in ("format", "version", "variables", "actions", "horizon")}
    kept |= {name: about[name] for name in ("discount", "scopes", "upper_bound", "at_start")}
    for _, wrong in mutated_data(kept | {"proof": about["proof"]}):
        text = np.frombuffer(json.dumps(wrong).encode(), dtype=np.uint8)
        judge(content, packed(parts | {"about.npy": array_bytes(text)}))


def test_models_that_the_library_refuses_are_refused(model):
    """But for what rewards are called, and said to lie between, which proves nothing."""
    accepted, reasons = 0, []
    for position, (label, wrong) in enumerate(mutated_data(to_dict(model))):
        content = json.dumps(wrong).encode()
        if position % 7 or any(f"'{name}'" in label for name in ("low", "high", "sigma", "name")):
            continue
        try:
            checker.read_model(content)
        except checker.BadInputError:
            continue
        try:
            from_bytes(content)
            accepted += 1
        except fsmdp.ModelError as error:
            reasons.append(str(error))
    assert accepted
    allowed = re.compile("expected all within|expected each name once")
    assert [reason for reason in reasons if not allowed.search(reason)] == []


def test_objects_in_arrays_are_never_unpickled(plan):
    parts = parts_of(plan)
    pickled = array_bytes(np.array([{"x": 1}], dtype=object), allow_pickle=True)
    refused(packed(parts | {"functions.npy": pickled}), "expected numbers of kind '<f8'")


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (array_bytes(np.ones(3, dtype=np.float32)), "expected numbers of kind '<f8'"),
        (array_bytes(np.ones(3, dtype=">f8")), "expected numbers of kind '<f8'"),
        (array_bytes(np.array([1.0, np.nan])), "expected finite numbers"),
        (array_bytes(np.ones((1, 1, 1))), "wrong length"),
        (array_bytes(np.ones(0)), "too few numbers"),
        (array_bytes(np.ones(99)), "too many numbers"),
        (array_bytes(np.ones(3))[:-4], "wrong length"),
        (b"", "not as NumPy writes it"),
        (b"\x93NUMPY\x03\x00\x00\x00\x00\x00", "not as NumPy writes it"),
        (b"\x93NUMPY\x01\x00\x00", "damaged, or not a plan"),
        (with_header("(" * 9000), "damaged, or not a plan"),
        (with_header("-" * 9000 + "1"), "damaged, or not a plan|expected numbers"),
        (with_header(" " * 20000), "header is too long"),
        (with_header(" " * 2**20, version=2), "header is too long"),
        (with_header("__import__('os').getcwd()"), "damaged, or not a plan"),
        (
            with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (10**9,)}"),
            "damaged, or not a plan|wrong length",
        ),
        (
            with_header(f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({2**62},)}}"),
            "wrong length",
        ),
        (
            with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -3)}", bytes(24)),
            "wrong length",
        ),
        (with_header("{'descr': '<f8', 'fortran_order': False, 'shape': [3]}"), "wrong length"),
        (with_header("{'descr': '<f8'}"), "expected numbers of kind"),
        (with_header("[1]"), "expected numbers of kind"),
    ],
)
def test_array_files_that_numpy_never_wrote_are_refused(plan, content, match):
    refused(packed(parts_of(plan) | {"functions.npy": content}), match)


def test_archives_with_tricks_are_refused(plan):
    parts = parts_of(plan)
    twice = [*parts.items(), ("bound_weights.npy", parts["bound_weights.npy"])]
    refused(packed(twice), "found 2 times")
    refused(packed(parts, compression=zipfile.ZIP_LZMA), "compressed in an unknown way")
    link = zipfile.ZipInfo("bound_weights.npy")
    link.external_attr = 0o120777 << 16  # a symbolic link, were it ever unpacked
    others = [(n, p) for n, p in parts.items() if n != link.filename]
    refused(packed([*others, (link, b"/etc/passwd")]), "not as NumPy writes it")
    encrypted = bytearray(packed(parts))
    at = encrypted.find(b"PK\x01\x02")
    while at >= 0:
        encrypted[at + 8] |= 1
        at = encrypted.find(b"PK\x01\x02", at + 1)
    refused(bytes(encrypted), "damaged, or not a plan")


def test_a_bomb_is_not_unpacked(plan, monkeypatch):
    monkeypatch.setattr(checker, "LARGEST_PART", 2**16)
    bomb = packed(parts_of(plan) | {"functions.npy": bytes(2**20)}, compression=8)
    assert len(bomb) < 2**14
    refused(bomb, "too large")


def test_other_versions_and_formats_are_refused(model, plan):
    data = to_dict(model)
    for wrong in ({"version": 2}, {"format": "other"}, {"version": 1.5}):
        with pytest.raises(checker.BadInputError, match=r"version \('fsmdp-model', 1\)"):
            checker.read_model(json.dumps(data | wrong).encode())
    about = json.dumps({"format": "fsmdp-plan", "version": 2}).encode()
    array = array_bytes(np.frombuffer(about, dtype=np.uint8))
    refused(packed(parts_of(plan) | {"about.npy": array}), r"version \('fsmdp-plan', 3\)")


def test_a_model_changed_by_hand_is_refused_until_its_digest_is_gone(model):
    content = model_bytes(model)
    changed = content.replace(b'"horizon":2', b'"horizon":3')
    with pytest.raises(checker.BadInputError, match="remove its digest"):
        checker.read_model(changed)
    data = json.loads(changed)
    del data["digest"]
    assert checker.read_model(json.dumps(data).encode()).horizon == 3


def wrong_model(model, change):
    data = to_dict(model)
    change(data)
    return json.dumps(data).encode()


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda d: d["conditionals"].pop(), "no conditional draws machine-2"),
        (lambda d: d["conditionals"].append(d["conditionals"][0]), "drawn a second time"),
        (lambda d: d["conditionals"][0]["cases"].pop(), "in no case|unknown"),
        (lambda d: d["conditionals"][0].update(children=[]), "draws nothing"),
        (lambda d: d["conditionals"][0]["cases"][0].update(drawn=["machine-1"]), "not drawn yet"),
        (lambda d: d["conditionals"][0]["cases"][0].update(table=[0.5, 0.6]), "sum of 1|shape"),
        (lambda d: d["rewards"][0]["cases"][0].update(drawn=["machine-1"]), "current values only"),
        (lambda d: d["rewards"][0]["cases"][0].update(actions=["fly"]), "unknown action"),
        (lambda d: d["rewards"][0]["cases"].append(d["rewards"][0]["cases"][0]), "two cases"),
        (lambda d: d.update(variables=[]), "expected at least one"),
        (lambda d: d.update(actions=[]), "expected at least one"),
        (lambda d: d.update(actions=["wait", "wait"]), "different names"),
        (lambda d: d.update(horizon=None), "no horizon and no discount"),
        (lambda d: d.update(discount=0), "more than 0"),
        (lambda d: d.update(discount=10**400), "expected a finite number"),
        (lambda d: d.update(initial={"fly": 1}), "unknown variable 'fly'"),
        (lambda d: d.update(initial={"machine-0": 2}), "from 0 to 1"),
        (lambda d: d.update(initial={"machine-0": [0.5, -0.5]}), "sum of 1"),
        (lambda d: d.update(latents=[{"name": "machine-0", "size": 2}]), "different names"),
        (lambda d: d.update(more=1), "unknown key 'more'"),
    ],
)
def test_wrong_models_are_refused_with_the_reason(model, change, match):
    with pytest.raises(checker.BadInputError, match=match):
        checker.read_model(wrong_model(model, change))


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff", b'{"a":1,"a":2}', b"[" * 10**5, b'{"n": NaN}']
)
def test_what_is_no_json_of_a_model_is_refused(content):
    with pytest.raises(checker.BadInputError):
        checker.read_model(content)


def test_the_main_function_ends_with_its_codes(model, plan, tmp_path, capsys):
    good, plan_path, wrong = (tmp_path / name for name in ("m.json", "p.npz", "w.npz"))
    good.write_bytes(model_bytes(model))
    plan_path.write_bytes(plan)
    parts = parts_of(plan)
    with np.load(io.BytesIO(plan)) as stored:
        weights = stored["bound_weights"].copy()
    weights[0, 0] -= 1
    wrong.write_bytes(packed(parts | {"bound_weights.npy": array_bytes(weights)}))
    assert checker.main([str(good), str(plan_path)]) == 0
    assert capsys.readouterr().out.startswith("PROVED")
    assert checker.main([str(good), str(wrong)]) == 1
    assert capsys.readouterr().out.startswith("REFUTED")
    for arguments in ([], [str(good)], [str(good), str(good)], [str(tmp_path), str(plan_path)]):
        assert checker.main(arguments) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.count("\n") == 1


def test_long_work_tells_how_far_it_is(capsys):
    tell = checker.progress(every=0.0)
    tell("step 1 of 2")
    assert capsys.readouterr().err.endswith("s  step 1 of 2\n")
