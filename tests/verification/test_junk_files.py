"""Files that are damaged, hostile or wrong: one line that says so, and nothing worse."""

import io
import json
import re
import warnings
import zipfile

import numpy as np
import pytest
from checked import model_bytes, plan_bytes
from tests.mutations import damaged, mutated_data

import fsmdp
from fsmdp import domains
from fsmdp.foundation.disk import EPOCH, PRIVATE, UNIX
from fsmdp.io.models import from_bytes, to_dict
from fsmdp.verification import checker


@pytest.fixture(scope="module")
def model():
    return domains.sysadmin(3, horizon=2)


@pytest.fixture(scope="module")
def plan(model):
    return plan_bytes(fsmdp.plan(model, method="joint"))


@pytest.fixture(scope="module")
def mine(model):
    return checker.read_model(model_bytes(model))


def parts_of(plan):
    with zipfile.ZipFile(io.BytesIO(plan)) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def packed(parts, **options):
    """An archive of parts by name, or of pairs of a name (or its entry) and content."""
    content = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(content, "w", **options) as archive:
        warnings.simplefilter("ignore")  # of names that are there twice
        for name, part in parts.items() if isinstance(parts, dict) else parts:
            entry = name if isinstance(name, zipfile.ZipInfo) else entry_of(name)
            archive.writestr(entry, part, options.get("compression"))
    return content.getvalue()


def entry_of(name):
    """As the library writes it."""
    entry = zipfile.ZipInfo(name, EPOCH)
    entry.create_system, entry.external_attr = UNIX, PRIVATE
    return entry


def about_of(plan):
    with np.load(io.BytesIO(plan)) as stored:
        return json.loads(stored["about"].tobytes())


def with_about(plan, text):
    """The plan with another description."""
    content = io.BytesIO()
    np.lib.format.write_array(content, np.frombuffer(text.encode(), dtype=np.uint8))
    return packed(parts_of(plan) | {"about.npy": content.getvalue()})


def refused(content, match, model):
    with pytest.raises(checker.BadInputError, match=match) as caught:
        checker.read_claim(content, model)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def judge(model_content, plan_content):
    """A verdict, or the line that refuses the files."""
    try:
        model = checker.read_model(model_content)
        return checker.check(model, checker.read_claim(plan_content, model))
    except checker.BadInputError as error:
        return str(error)


def test_cut_and_flipped_files_are_refused_or_as_good_as_before(model, plan, mine):
    rng = np.random.default_rng(0)
    content = model_bytes(model)
    for wrong in damaged(plan, rng, 300):
        judge(content, wrong)
    for wrong in damaged(content, rng, 300):
        assert isinstance(judge(wrong, plan), str) or wrong == content
    refused(plan[: len(plan) // 2], "damaged, or not a plan", mine)
    refused(b"", "damaged, or not a plan", mine)


READ = (
    *("variables", "actions", "horizon", "discount", "scopes", "functions", "bound_weights"),
    *("upper_bound", "at_start", "proof", "elimination", "invariants", "restrictions"),
    "start_proof",
)


def test_wrong_descriptions_are_refused_or_judged(model, plan):
    content, about = model_bytes(model), about_of(plan)
    proved = 0
    for label, wrong in list(mutated_data(about))[::5]:
        verdict = judge(content, with_about(plan, json.dumps(wrong)))
        if not isinstance(verdict, str) and verdict.proved:
            # Whatever was done to the weights, they are a bound and were proved to be one.
            assert verdict.bound <= verdict.claim.upper_bound, label
            proved += 1
    assert proved


@pytest.mark.parametrize("name", READ)
def test_descriptions_that_lack_something_are_refused(plan, mine, name):
    about = about_of(plan)
    del about[name]
    refused(with_about(plan, json.dumps(about)), f"missing or unknown key '{name}'", mine)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"scopes": [[0, 0]]}, "found one twice"),
        ({"scopes": [[3]]}, "from 0 to 2"),
        ({"scopes": []}, "as many functions as scopes"),
        ({"scopes": [], "functions": [], "bound_weights": [[], [], []]}, "as many functions"),
        ({"functions": [[1.0], [1.0, 2.0], [1.0], [1.0, 2.0]]}, "expected 2 numbers, found 1"),
        ({"functions": [[float("nan")]]}, "NaN is no number of JSON"),
        ({"functions": [[10**400]]}, "expected a finite number"),
        ({"functions": [[True]]}, "expected a finite number"),
        ({"bound_weights": [[0.0] * 4] * 2}, "weights at each step"),
        ({"bound_weights": [[0.0] * 3] * 3}, "weights at each step"),
        ({"bound_weights": [[1.0] * 4] * 3}, "expected 0 after the last step"),
        ({"upper_bound": None}, "upper_bound: expected a finite number"),
        ({"invariants": [{"scope": [], "counts": [], "least": 0, "most": 1}]}, "small number"),
        ({"invariants": [{"scope": [0], "counts": [[1]], "least": 0, "most": 1}]}, "small number"),
        (
            {"invariants": [{"scope": [0], "counts": [[0, 9999]], "least": 0, "most": 1}]},
            "small number",
        ),
        ({"invariants": [{"scope": [0], "allowed": [1]}]}, "expected 2 numbers, found 1"),
        ({"invariants": [{"scope": [0], "allowed": [1, 2]}]}, "from 0 to 1"),
        ({"invariants": [3]}, "invariants: expected an object"),
        ({"restrictions": [[0]]}, "expected a list of 2"),
        ({"restrictions": [[-2, []]]}, "from -1"),
    ],
)
def test_wrong_descriptions_are_refused_with_the_reason(plan, mine, change, match):
    about = about_of(plan)
    assert len(about["scopes"]) == 4
    refused(with_about(plan, json.dumps(about | change)), match, mine)


def test_a_restriction_to_no_invariant_is_refused(model, plan):
    wrong = with_about(plan, json.dumps(about_of(plan) | {"restrictions": [[0, []]]}))
    assert judge(model_bytes(model), wrong) == "plan: restrictions: no such invariant"


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


def test_archives_with_tricks_are_refused(plan, mine):
    parts = parts_of(plan)
    refused(packed({n: p for n, p in parts.items() if n != "about.npy"}), "not a plan", mine)
    refused(packed([*parts.items(), ("about.npy", parts["about.npy"])]), "not a plan", mine)
    link = zipfile.ZipInfo("about.npy")
    link.external_attr = 0o120777 << 16  # a symbolic link, were it ever unpacked
    others = [(n, p) for n, p in parts.items() if n != link.filename]
    refused(packed([*others, (link, b"/etc/passwd")]), "damaged, or not a plan", mine)
    encrypted = bytearray(packed(parts))
    at = encrypted.find(b"PK\x01\x02")
    while at >= 0:
        encrypted[at + 8] |= 1
        at = encrypted.find(b"PK\x01\x02", at + 1)
    refused(bytes(encrypted), "damaged, or not a plan", mine)


def test_headers_of_arrays_with_tricks_are_refused(plan, mine):
    parts = parts_of(plan)
    good = parts["about.npy"]
    for wrong in (
        good + b" ",
        good[:-1],
        good.replace(b"\n", b" ", 1),
        good[:10] + bytes(10**5),
        good.replace(b"|u1", b"|u" + b"1" * 5000),
        good.replace(b"False", b"True", 1),
        b"",
    ):
        refused(packed(parts | {"about.npy": wrong}), "plan: (damaged|array about)", mine)
    beside = packed([*parts.items(), ("about", good)])
    refused(beside, "damaged, or not a plan: member 'about'", mine)


def test_a_bomb_is_not_unpacked(plan, mine, monkeypatch):
    monkeypatch.setattr(checker, "LARGEST_PLAN", 2**16)
    bomb = packed(parts_of(plan) | {"about.npy": bytes(2**20)}, compression=8)
    assert len(bomb) < 2**14
    refused(bomb, "too large", mine)


def test_other_versions_and_formats_are_refused(model, plan, mine):
    data = to_dict(model)
    for wrong in ({"version": 2}, {"format": "other"}, {"version": 1.5}):
        with pytest.raises(checker.BadInputError, match=r"version \('fsmdp-model', 1\)"):
            checker.read_model(json.dumps(data | wrong).encode())
    refused(with_about(plan, json.dumps(about_of(plan) | {"more": 1})), "unknown key 'more'", mine)
    about = json.dumps({"format": "fsmdp-plan", "version": 4})
    refused(with_about(plan, about), r"version \('fsmdp-plan', 6\)", mine)


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
        (lambda d: d["conditionals"].append(d["conditionals"][0]), "what was drawn before"),
        (lambda d: d["conditionals"][0]["cases"].pop(), "in no case|unknown"),
        (lambda d: d["conditionals"][0].update(children=[]), "draws nothing"),
        (lambda d: d["conditionals"][0]["cases"][0].update(drawn=["machine-1"]), "not drawn yet"),
        (lambda d: d["conditionals"][0]["cases"][0].update(table=[0.5, 0.6]), "sum of 1|shape"),
        (lambda d: d["rewards"][0]["cases"][0].update(drawn=["machine-1"]), "not drawn yet"),
        (lambda d: d["rewards"][0]["cases"][0].update(actions=["fly"]), "an action is unknown"),
        (lambda d: d["rewards"][0]["cases"].append(d["rewards"][0]["cases"][0]), "two cases"),
        (lambda d: d.update(variables=[]), "expected at least one"),
        (lambda d: d.update(actions=[]), "expected at least one"),
        (lambda d: d.update(actions=["wait", "wait"]), "found one twice"),
        (lambda d: d.update(horizon=None), "below 1 without a horizon"),
        (lambda d: d.update(discount=0), "a discount from 0 to 1"),
        (lambda d: d.update(discount=10**400), "expected a finite number"),
        (lambda d: d.update(initial={"fly": 1}), "initial: missing or unknown key 'fly'"),
        (lambda d: d.update(initial={"machine-0": 2}), "from 0 to 1"),
        (lambda d: d.update(initial={"machine-0": [0.5, -0.5]}), "sum of 1"),
        (lambda d: d.update(latents=[{"name": "machine-0", "size": 2}]), "found one twice"),
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
    about = about_of(plan)
    about["bound_weights"][0][0] -= 1
    wrong.write_bytes(with_about(plan, json.dumps(about)))
    assert checker.main([str(good), str(plan_path)]) == 0
    assert capsys.readouterr().out.startswith("PROVED")
    assert checker.main([str(good), str(wrong)]) == 1
    assert capsys.readouterr().out.startswith("REFUTED")
    for arguments in ([], [str(good)], [str(good), str(good)], [str(tmp_path), str(plan_path)]):
        assert checker.main(arguments) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.count("\n") == 1
