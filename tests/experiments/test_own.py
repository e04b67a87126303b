"""What users name of their own in a specification, and runs that are made longer."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from tests.experiments.sweeps import Here, episodes_of, ring
from typer.testing import CliRunner

import fsmdp
from fsmdp.cli.entry import app
from fsmdp.errors import ModelError
from fsmdp.experiments.runner import compare
from fsmdp.experiments.specification import Specification, read_specification, specify
from fsmdp.experiments.store import Store, read_results
from fsmdp.io.readers import read_basis, read_model

MODULE = '''
import fsmdp
import gymnasium as gym
import numpy as np

ring = lambda: fsmdp.domains.sysadmin(3, horizon=4)
number = 7


class Coin(gym.Env):
    """Shows 0 or 1 at random; pays what it shows, if it was guessed."""

    observation_space = gym.spaces.MultiDiscrete([2])
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.side, self.steps = 0, 0
        return np.array([0]), {}

    def step(self, action):
        reward = float(action == self.side)
        self.side = int(self.np_random.random() < 0.7)
        self.steps += 1
        return np.array([self.side]), reward, False, self.steps == 5, {}


def told():
    side = fsmdp.Variable("side", 2)
    return fsmdp.Structure.from_parents(
        [side],
        ["zero", "one"],
        parents={"side": [fsmdp.Case(fsmdp.ANY, parents=[])]},
        rewards=[
            fsmdp.Reward(
                "guessed",
                [
                    fsmdp.Case(["zero"], parents=["side"], table=[0.5, 0.5]),
                    fsmdp.Case(fsmdp.ANY, parents=["side"], table=[0.5, 0.5]),
                ],
                low=0,
                high=1,
            )
        ],
        basis=fsmdp.Basis.singles([side]),
        horizon=5,
    )


def basis(model):
    return fsmdp.Basis.blocks(model, [[0, 1]])


def careful(structure, seed, known_rewards, prior=2.0, often=True, name="x"):
    return fsmdp.PSRLFactored(structure, seed=seed, prior=prior, known_rewards=known_rewards)


def leaving():
    raise SystemExit(7)


def left(structure, seed):
    raise SystemExit(7)


def nothing(structure):
    return 7


def broken():
    raise ZeroDivisionError("by nothing")


def needy(structure, wants):
    return None
'''

TEXT = """
name = "own"
episodes = 6

[[models]]
model = "things_of_mine:ring"
basis = "things_of_mine:basis"

[[models]]
environment = "things_of_mine:Coin"
structure = "things_of_mine:told"

[[learners]]
learner = "things_of_mine:careful"
prior = 3

[[learners]]
learner = "random"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A specification with a module beside it, neither of them in the current folder."""
    (tmp_path / "things_of_mine.py").write_text(MODULE)
    (tmp_path / "exits_at_once.py").write_text("raise SystemExit(3)")
    (tmp_path / "own.toml").write_text(TEXT)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    sys.modules.pop("things_of_mine", None)


def test_a_specification_names_things_of_ones_own(folder):
    asked, text = read_specification(folder / "own.toml", allow_code=True)
    results = compare(asked, folder / "runs", Here(), text=text)
    assert [run.message for run in results.runs] == [None] * 4
    known, simulated = results.models.values()
    assert known.start_value_exact == pytest.approx(
        fsmdp.solve_exactly(fsmdp.domains.sysadmin(3, horizon=4)).start_value
    )
    assert simulated.start_value_exact is simulated.plan_upper_bound is None
    assert (simulated.variables, simulated.actions, simulated.horizon) == (1, 2, 5)
    coin = next(run for run in results.runs if run.model == "things_of_mine-Coin")
    assert coin.facts["options"]["prior"] == 3.0
    module = sys.modules["things_of_mine"]
    expected = fsmdp.learn(
        module.Coin(), fsmdp.PSRLFactored(module.told(), seed=0, prior=3.0), episodes=6
    )
    assert coin.episodes["returns"].to_list() == expected.returns.tolist()


def test_workers_find_the_module_too(folder):
    asked, _ = read_specification(folder / "own.toml", allow_code=True)
    results = compare(asked, folder / "runs", "local", 1)
    assert [run.message for run in results.runs] == [None] * 4


def test_a_report_of_an_environment_is_written(folder):
    from fsmdp.report import write_report

    asked, _ = read_specification(folder / "own.toml", allow_code=True)
    compare(asked, folder / "runs", Here())
    assert write_report(folder / "runs", figures=False).path.is_file()


def test_python_takes_what_a_specification_does(folder):
    sys.path.append(str(folder))
    coin = {"environment": "things_of_mine:Coin", "structure": "things_of_mine:told"}
    own = [{"model": "things_of_mine:ring", "basis": "pairs"}, "things_of_mine:ring", coin]
    results = fsmdp.compare(
        own,
        "random",
        episodes=2,
        basis=[["machine-0", "machine-1"]],
        output=folder / "runs",
        executor=Here(),
    )
    bases = [facts.basis for facts in results.models.values()]
    assert bases == ["pairs", "blocks of up to 2", "of the structure"]


def test_blocks_and_files_are_bases(tmp_path):
    model = fsmdp.domains.sysadmin(3)
    values = [[0.0, 1.0], [2.0, 5.0]]
    own = {
        "blocks": [["machine-0", "machine-1"]],
        "functions": [{"scope": ["machine-2", "machine-1"], "values": values}],
    }
    (tmp_path / "mine.json").write_text(json.dumps(own))
    found = read_basis(model, str(tmp_path / "mine.json"))
    expected = [
        *fsmdp.Basis.blocks(model, [["machine-0", "machine-1"]]),
        fsmdp.Table(["machine-2", "machine-1"], values).bind(model.variables),
    ]
    for state in np.ndindex(2, 2, 2):
        assert found.evaluate(state).tolist() == [one.value(state) for one in expected]
    data = {"name": "x", "episodes": 2, "learners": [{"learner": "random"}]}
    tables = [{"model": "sysadmin:3", "basis": "mine.json"}]
    setting = specify(data | {"models": tables}, tmp_path).models[0]
    (tmp_path / "mine.json").unlink()  # a worker need not have it
    assert len(read_basis(model, setting.basis)) == len(expected)
    with pytest.raises(ModelError, match="expected basis or blocks, found both"):
        specify(data | {"models": [{"model": "sysadmin:3", "basis": "pairs", "blocks": [["a"]]}]})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "things_of_mine:missing"}, "module 'things_of_mine' has no 'missing'"),
        ({"model": "things_of_mine:number"}, "is 7, expected a function or a class"),
        ({"model": "things_of_mine:told"}, "of type FactoredMDP; return one"),
        ({"model": "things_of_mine:Coin"}, "is a class of something else, expected .*FactoredMDP"),
        ({"model": "things_of_mine:leaving"}, "'things_of_mine:leaving' failed .SystemExit: 7"),
        ({"model": "exits_at_once:make"}, "cannot import 'exits_at_once' .SystemExit: 3"),
        ({"model": "os:abort"}, "'os:abort' is of Python's standard library"),
        ({"model": "ctypes.util:find_library"}, "is of Python's standard library"),
        ({"model": "numpy:array"}, "expected a function or a class written in Python"),
        ({"model": "numpy:ndarray"}, "expected a function or a class written in Python"),
        ({"model": "things_of_mine:broken"}, "failed .ZeroDivisionError: by nothing"),
        ({"model": "nothing_like_it:make"}, "unknown domain 'nothing_like_it'"),
        ({"model": "plan.npz"}, "expected a model, found the name of a plan's file"),
        ({"model": "sysadmin:3", "basis": "things_of_mine:ring"}, "failed .TypeError"),
        ({"environment": "things_of_mine:Coin"}, "an environment comes with a structure"),
        ({"structure": "things_of_mine:told"}, "expected a model, or an environment"),
        (
            {"environment": "things_of_mine:ring", "structure": "things_of_mine:told"},
            "of type Env; return one",
        ),
    ],
)
def test_mistakes_in_places_are_explained(change, message, folder):
    data = {"name": "x", "episodes": 2, "models": [change], "learners": [{"learner": "random"}]}
    with pytest.raises(ModelError, match=message):
        compare(specify(data, folder), folder / "runs", Here())


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        ({"learner": "things_of_mine:needy"}, "parameter 'wants' .* has no default"),
        ({"learner": "things_of_mine:careful", "prior": "x"}, "'prior': expected a number"),
        ({"learner": "things_of_mine:careful", "wrong": 1}, "has no option 'wrong'"),
        ({"learner": "things_of_mine:broken"}, "takes no arguments, expected the structure"),
    ],
)
def test_mistakes_in_learners_are_explained(learner, message, folder):
    data = {"name": "x", "episodes": 2, "models": [{"model": "sysadmin:3"}], "learners": [learner]}
    with pytest.raises(ModelError, match=message):
        specify(data, folder)


def test_what_an_environment_cannot_tell_fails_that_run_alone(folder):
    data = {
        "name": "x",
        "episodes": 2,
        "models": [{"environment": "things_of_mine:Coin", "structure": "things_of_mine:told"}],
        "learners": [
            {"learner": "psrl", "known_rewards": True},
            {"learner": "psrl", "basis": "pairs"},
            {"learner": "optimal"},
            {"learner": "random"},
        ],
    }
    results = compare(specify(data, folder), folder / "runs", Here())
    rewards, basis, optimal, random = (run.message for run in results.runs)
    assert "does not say what its rewards are" in rewards
    assert "has its own" in basis
    assert "whose model nobody knows" in optimal
    assert random is None


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        ("things_of_mine:left", "learner: 'things_of_mine:left' failed .SystemExit: 7"),
        ("things_of_mine:nothing", "learner: 'things_of_mine:nothing' made something else: .* 7"),
    ],
)
def test_failures_inside_a_learner_of_ones_own_name_it(learner, message, folder):
    data = {"name": "x", "episodes": 2, "models": [{"model": "sysadmin:3"}]}
    asked = specify(data | {"learners": [{"learner": learner}]}, folder)
    (run,) = compare(asked, folder / "runs", Here()).runs
    assert re.search(message, run.message)


CODE = {
    "model": ({"model": "prints:make"}, {"learner": "random"}),
    "basis": ({"model": "sysadmin:3", "basis": "prints:make"}, {"learner": "random"}),
    "environment": (
        {"environment": "prints:make", "structure": "other:make"},
        {"learner": "random"},
    ),
    "structure": ({"model": "sysadmin:3", "structure": "prints:make"}, {"learner": "random"}),
    "learner": ({"model": "sysadmin:3"}, {"learner": "prints:make"}),
    "learner's basis": ({"model": "sysadmin:3"}, {"learner": "ucrl", "basis": "prints:make"}),
    "named like a learner": ({"model": "sysadmin:3"}, {"learner": "ucrl:make"}),
    "in a package": ({"model": "prints.inner:make"}, {"learner": "random"}),
}


@pytest.mark.parametrize("kind", CODE)
def test_a_specification_runs_no_code_unless_that_is_allowed(kind, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("prints.py", "ucrl.py", "other.py"):
        (tmp_path / name).write_text("print('this ran')\nmake = None\n")
    model, learner = (
        "\n".join(f'{key} = "{value}"' for key, value in table.items()) for table in CODE[kind]
    )
    text = f'name = "x"\nepisodes = 2\n[[models]]\n{model}\n[[learners]]\n{learner}\n'
    (tmp_path / "x.toml").write_text(text)
    with pytest.raises(ModelError, match=r"would be imported, which runs code.*--allow-code"):
        read_specification(tmp_path / "x.toml")
    done = CliRunner().invoke(app, ["compare", str(tmp_path / "x.toml")])
    assert isinstance(done.exception, ModelError)
    assert "this ran" not in capsys.readouterr().out + done.output


def test_the_folder_of_a_specification_is_not_searched_unless_code_is_allowed(tmp_path):
    tables = '[[models]]\nmodel = "sysadmin:3"\n[[learners]]\nlearner = "random"\n'
    (tmp_path / "x.toml").write_text(f'name = "x"\nepisodes = 2\n{tables}')
    read_specification(tmp_path / "x.toml")
    assert str(tmp_path) not in sys.path


def test_a_folder_runs_no_code_that_was_not_asked_for(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "prints.py").write_text("print('this ran')\nmake = None\n")
    asked = ring(episodes=4, seeds=1, learners=[{"learner": "random"}])
    compare(asked, tmp_path / "runs", Here())
    older = asked.to_dict()
    older["learners"][0] |= {"learner": "prints:make"}
    Store(tmp_path / "runs").write_specification(Specification.from_dict(older), None)
    with pytest.raises(ModelError, match="of its learners is missing or different"):
        compare(asked, tmp_path / "runs", Here())
    assert "this ran" not in capsys.readouterr().out


def test_a_domain_that_ends_the_process_is_one_line(tmp_path):
    command = [sys.executable, "-m", "fsmdp", "inspect", "os:abort"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert "'os:abort' is of Python's standard library" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_command_line_takes_a_function(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert read_model("things_of_mine:ring").horizon == 4


def test_runs_made_longer_go_on_and_end_as_if_they_had_never_stopped(tmp_path, monkeypatch):
    compare(ring(episodes=40), tmp_path / "grown", Here())
    made = []
    from fsmdp.experiments import runner

    real = runner.build_learner

    def note(*arguments):
        made.append(real(*arguments))
        return made[-1]

    monkeypatch.setattr(runner, "build_learner", note)
    longer = ring(episodes=60, learners=[*ring_learners(), {"learner": "random"}])
    results = compare(longer, tmp_path / "grown", Here())
    assert not results.missing
    assert {len(run.episodes) for run in results.runs} == {60}
    assert results.models["sysadmin-ring-3-horizon=4"].regret_bound["episodes"][-1] == 60
    compare(longer, tmp_path / "whole", Here())
    assert episodes_of(tmp_path / "grown") == episodes_of(tmp_path / "whole")
    counted = [one.statistics.episodes for one in made[: len(results.runs)]]
    assert counted == [60] * len(results.runs)


def ring_learners():
    return [{"learner": "ucrl", "known_rewards": True}, {"learner": "psrl"}]


def test_a_run_to_be_made_longer_is_missing_until_it_is(tmp_path):
    compare(ring(episodes=20, seeds=1), tmp_path, Here())
    Store(tmp_path).write_specification(ring(episodes=30, seeds=1), None)
    assert len(read_results(tmp_path).missing) == 2


def test_a_module_that_cannot_be_found_is_named_beside_what_is_known():
    with pytest.raises(
        ModelError, match=r"unknown learner 'minee:careful'.*Nor can module 'minee'"
    ):
        ring(learners=[{"learner": "minee:careful"}])
