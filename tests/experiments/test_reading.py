"""Specifications: what they say, and what is said of a wrong one."""

import pickle

import pytest
from tests.experiments.sweeps import RING, ring

import fsmdp
from fsmdp.domains import sysadmin
from fsmdp.errors import ModelError
from fsmdp.experiments.learners import build_learner, resolve_options
from fsmdp.experiments.specification import Specification, read_specification, safe_name, specify
from fsmdp.learning.learners.registry import LEARNERS

TEXT = """
name = "ring"
episodes = 300
seeds = [3, 5]
[[models]]
model = "sysadmin:ring:8"
basis = "pairs"
[[learners]]
learner = "ucrl"
preset = "practical"
[[learners]]
learner = "ucrl"
label = "by the paper"
preset = "paper"
scale = 0.5
"""


def test_every_model_learner_and_seed_is_a_run_with_a_readable_id(tmp_path):
    path = tmp_path / "ring.toml"
    path.write_text(TEXT)
    found, text = read_specification(path)
    assert text == TEXT
    assert [run.id for run in found.runs] == [
        "sysadmin-ring-8--ucrl-practical--seed-3",
        "sysadmin-ring-8--ucrl-practical--seed-5",
        "sysadmin-ring-8--ucrl-paper-scale-0.5--seed-3",
        "sysadmin-ring-8--ucrl-paper-scale-0.5--seed-5",
    ]
    assert [learner.label for learner in found.learners] == [
        "UCRL-Factored (practical)",
        "by the paper",
    ]


def test_a_resolved_specification_says_what_a_preset_stands_for_and_reads_back():
    found = ring(learners=[{"learner": "ucrl", "preset": "paper"}, {"learner": "psrl"}])
    assert found.to_dict()["learners"][0]["options"] == {
        "preset": "paper",
        "confidence": "weissman",
        "method": "joint",
        "replan": "episode",
        "planner": "program",
        "empirical_weight": 0.0,
        "delta": 0.05,
        "scale": 1.0,
        "basis": None,
        "known_rewards": False,
    }
    assert Specification.from_dict(found.to_dict()).to_dict() == found.to_dict()
    assert pickle.loads(pickle.dumps(found.runs[0])).id == found.runs[0].id


def test_ids_are_different_on_systems_that_ignore_capitals():
    found = specify(
        RING
        | {
            "models": [
                {"model": "sysadmin:ring:3"},
                {"model": "sysadmin/ring/3"},
                {"model": "SysAdmin:ring:3"},
                {"model": "sysadmin:ring:3", "basis": "pairs"},
            ],
            "learners": [
                {"learner": "ucrl", "delta": 0.123456789},
                {"learner": "ucrl", "delta": 0.1234567},
            ],
        }
    )
    assert len({run.id.lower() for run in found.runs}) == len(found.runs)


def test_names_of_runs_are_safe_for_files():
    assert safe_name("../a b:<c>/\\d\0") == "a-b-c-d"
    assert safe_name("::") == "unnamed"
    assert len(safe_name("x" * 500)) == 80


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"episodes": 0}, "episodes: .*greater than or equal to 1, found 0"),
        ({"episodes": 2.5}, "episodes: .*integer, found 2.5"),
        ({"seeds": 0}, "seeds: expected how many"),
        ({"seeds": [1, 1]}, "seeds: expected different seeds"),
        ({"seeds": [-1]}, "seeds: expected how many"),
        ({"episode": 3}, "unknown key 'episode'; expected 'name', 'episodes', 'seeds'"),
        ({"models": []}, "models: .*at least 1"),
        ({"models": [{"model": "a", "base": "b"}]}, r"models\[0\]: unknown key 'base'"),
        ({"models": [{"model": "a"}, {"model": "a"}]}, r"models\[1\]: .*models\[0\] already"),
        ({"learners": [{"learner": "ucrll"}]}, r"learners\[0\]: .*did you mean 'ucrl'"),
        ({"learners": [{"learner": "ucrl", "preset": "fast"}]}, "option 'preset': expected one of"),
        ({"learners": [{"learner": "ucrl", "presett": 1}]}, "did you mean 'preset'"),
        ({"learners": [{"learner": "ucrl", "delta": 1}]}, "a probability between 0 and 1, found 1"),
        ({"learners": [{"learner": "ucrl", "replan": -1}]}, "'episode', or the growth .* found -1"),
        ({"learners": [{"learner": "psrl", "prior": [1]}]}, r"above 0, found \[1\]"),
        ({"learners": [{"learner": "psrl", "known_rewards": 1}]}, "true or false, found 1"),
        ({"learners": [{"learner": "random", "delta": 1}]}, "it has no options"),
        ({"learners": [{"learner": "psrl"}, {"learner": "psrl"}]}, "the same learner as"),
        (
            {"learners": [{"learner": "psrl", "label": "x"}, {"learner": "ucrl", "label": "x"}]},
            "label 'x' is taken",
        ),
        ({"seeds": 100_000}, "200000 runs, expected at most 100000"),
    ],
)
def test_a_wrong_specification_is_an_error_that_names_the_key(change, message):
    with pytest.raises(ModelError, match=message):
        ring(**change)


def test_a_file_that_is_no_specification_is_an_error_that_names_the_file(tmp_path):
    path = tmp_path / "x.toml"
    for content, message in ((b"name = ", "not TOML"), (b"\xff", "UTF-8"), (b"", "name")):
        path.write_bytes(content)
        with pytest.raises(ModelError, match=rf"x.toml: .*{message}"):
            read_specification(path)


def test_model_files_are_found_beside_the_specification(tmp_path):
    fsmdp.save(sysadmin(3), tmp_path / "pump.json")
    (tmp_path / "x.toml").write_text(TEXT.replace("sysadmin:ring:8", "pump.json"))
    found, _ = read_specification(tmp_path / "x.toml")
    assert found.models[0].model == str(tmp_path / "pump.json")
    assert found.models[0].id == "pump"


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_can_be_built_by_name_and_learns(name):
    model, given = sysadmin(3, horizon=4), {}
    if name == "olive":  # which writes all its hypotheses out
        model, given = sysadmin(2, horizon=4), {"known_rewards": True, "levels": 2}
    options = resolve_options(LEARNERS[name], given, "here")
    learner = build_learner(name, model, fsmdp.Basis.singles(model), options, seed=0)
    assert len(fsmdp.learn(model, learner, episodes=3)) == 3


def test_a_learner_may_have_a_basis_of_its_own():
    model = sysadmin(3, horizon=4)
    options = resolve_options(LEARNERS["ucrl"], {"basis": "pairs"}, "here")
    learner = build_learner("ucrl", model, fsmdp.Basis.singles(model), options, seed=0)
    assert len(learner.structure.basis) == len(fsmdp.Basis.pairs(model))


def test_options_are_listed_once():
    for option in ("preste", "zzz"):
        with pytest.raises(ModelError, match="has no option") as found:
            ring(learners=[{"learner": "ucrl", option: 1}])
        assert str(found.value).count("known_rewards") == 1
