"""Commands that are killed at random moments: files are absent, old or whole, and runs go on."""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

import fsmdp
from fsmdp.reproduction.ippc import read_results
from tests.experiments.sweeps import assert_readable, episodes_of
from tests.experiments.test_killed import TEXT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="signals as on POSIX"),
]

KILLS = 12
DEADLINE = 300.0  # so that what hangs fails in the end
SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)


def run(*arguments):
    """A command that nobody disturbs: seconds, and what it printed."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "fsmdp", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert done.returncode == 0, done.stderr
    return time.perf_counter() - began, done.stdout


class Attack:
    """Kills of one command, at moments of its usual length, and what came of them."""

    def __init__(self, seconds, *arguments):
        self.seconds, self.arguments = seconds, arguments
        self.draw = random.Random(arguments[0])
        self.counts = {"in time": 0, "too late": 0}

    def strike(self):
        """Start the command and end it; False if it has ended by itself before."""
        number = self.draw.choice(SIGNALS)
        command = [sys.executable, "-m", "fsmdp", *map(str, self.arguments)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, **pipes, start_new_session=True) as process:
            try:
                process.wait(self.draw.uniform(0.0, self.seconds))
                self.counts["too late"] += 1
            except subprocess.TimeoutExpired:
                self.counts["in time"] += 1
                with contextlib.suppress(ProcessLookupError):
                    # An interrupt reaches all of a terminal's processes, a kill the one it names.
                    if number == signal.SIGINT:
                        os.killpg(process.pid, number)
                    else:
                        process.send_signal(number)
            _, err = process.communicate(timeout=DEADLINE)
        assert "Traceback" not in err, (number, err)
        return process.returncode != 0

    def callback(self, capsys, found):
        with capsys.disabled():
            print(f"\n{self.arguments[0]}: kills {self.counts}, found afterwards {found}")


def test_a_plan_is_old_or_whole(tmp_path, capsys):
    path = tmp_path / "plan.npz"
    arguments = ("plan", "sysadmin:ring:8", "--method", "programs", "--output", path, "--quiet")
    run(*arguments)  # compiles
    seconds, _ = run(*arguments)
    whole = fsmdp.load_plan(path)
    old = fsmdp.plan(fsmdp.domains.sysadmin(2), method="programs")
    attack, found = Attack(seconds, *arguments), {"old": 0, "whole": 0}
    for _ in range(KILLS):
        old.save(path)
        attack.strike()
        seen = fsmdp.load_plan(path)
        is_old = len(seen.variables) == 2
        found["old" if is_old else "whole"] += 1
        assert seen.upper_bound == old.upper_bound if is_old else seen.upper_bound > 0
    run(*arguments)
    again = fsmdp.load_plan(path)
    assert again.upper_bound == whole.upper_bound
    assert (again.q_entries == whole.q_entries).all()
    attack.callback(capsys, found)


def test_a_learner_goes_on_from_its_checkpoint(tmp_path, capsys):
    def arguments(folder):
        asked = ("learn", "sysadmin:ring:4:horizon=6", "--learner", "psrl", "--episodes", "1200")
        return *asked, "--checkpoint", folder / "learner.npz", "--json", "--quiet"

    def numbers(printed):
        return {k: v for k, v in json.loads(printed).items() if "seconds" not in k and k != "run"}

    (tmp_path / "whole").mkdir()
    (tmp_path / "killed").mkdir()
    seconds, printed = run(*arguments(tmp_path / "whole"))
    path = tmp_path / "killed" / "learner.npz"
    attack = Attack(seconds, *arguments(path.parent))
    found = {"absent": 0, "checkpoint": 0}
    for _ in range(KILLS):
        struck = attack.strike()
        found["checkpoint" if path.exists() else "absent"] += 1
        if path.exists():
            assert_readable(path.parent)
        if not struck:
            path.unlink()  # done, in spite of all kills: begin again
    _, after = run(*arguments(path.parent))
    assert numbers(after) == numbers(printed)
    attack.callback(capsys, found)


def test_a_run_is_whole_or_not_there(tmp_path, capsys):
    def arguments(folder):
        asked = ("learn", "sysadmin:ring:3:horizon=4", "--learner", "psrl", "--episodes", "300")
        return *asked, "--output", folder, "--quiet"

    seconds, _ = run(*arguments(tmp_path / "whole"))
    folder = tmp_path / "killed"
    attack, found = Attack(seconds, *arguments(folder)), {"absent": 0, "folder": 0}
    for _ in range(KILLS):
        struck = attack.strike()
        found["folder" if folder.exists() else "absent"] += 1
        if (folder / "specification.json").exists():
            assert_readable(folder)
        if not struck:  # done, in spite of all kills: begin again
            assert episodes_of(folder) == episodes_of(tmp_path / "whole")
            shutil.rmtree(folder)
    run(*arguments(folder))
    assert episodes_of(folder) == episodes_of(tmp_path / "whole")
    attack.callback(capsys, found)


def test_a_sweep_goes_on_where_it_was(tmp_path, capsys):
    specification = tmp_path / "ring.toml"
    specification.write_text(TEXT)
    seconds, _ = run("compare", specification, "--output", tmp_path / "whole")
    attack = Attack(seconds, "compare", specification, "--output", tmp_path / "killed")
    found = {"absent": 0, "folder": 0}
    for _ in range(KILLS):
        struck = attack.strike()
        begun = (tmp_path / "killed" / "specification.json").exists()
        found["folder" if begun else "absent"] += 1
        if begun:
            assert_readable(tmp_path / "killed")
        if not struck:  # done, in spite of all kills: begin again
            assert episodes_of(tmp_path / "killed") == episodes_of(tmp_path / "whole")
            shutil.rmtree(tmp_path / "killed")
    run("compare", specification, "--output", tmp_path / "killed")
    assert episodes_of(tmp_path / "killed") == episodes_of(tmp_path / "whole")
    attack.callback(capsys, found)


def test_results_of_the_competitions_are_whole_or_not_there(tmp_path, capsys):
    asked = ("ippc", "SysAdmin:1", "GameOfLife:1", "--seconds", "2", "--episodes", "20", "--quiet")
    seconds, _ = run(*asked, "--output", tmp_path / "whole")
    folder = tmp_path / "killed"
    attack, found = Attack(seconds, *asked, "--output", folder), {0: 0, 1: 0, 2: 0}
    for _ in range(KILLS):
        struck = attack.strike()
        found[len(read_results(folder)) if folder.exists() else 0] += 1
        if not struck:  # done, in spite of all kills: begin again
            shutil.rmtree(folder)
    run(*asked, "--output", folder)
    assert len(read_results(folder)) == 2
    attack.callback(capsys, found)
