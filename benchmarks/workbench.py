"""The workbench: two workers against one, its overhead over plain `learn`, the size of a report.

Prints ratios measured in this run. Run: python benchmarks/workbench.py [--report]
"""

import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from fsmdp.experiments.local import use_one_thread

use_one_thread()

console = Console(highlight=False)


def sweep(runs, episodes, model="sysadmin:ring:8", learner="psrl"):
    """A specification with one run for each seed."""
    from fsmdp.experiments.specification import specify

    return specify(
        {
            "name": "workbench",
            "episodes": episodes,
            "seeds": runs,
            "checkpoint_every": max(1, episodes // 5),
            "models": [{"model": model, "basis": "pairs"}],
            "learners": [{"learner": learner, "known_rewards": True}],
        }
    )


def seconds_of_sweep(asked, workers):
    """Wall clock of a whole `compare`, its processes and the model's facts included.

    A tiny sweep goes before it, so that compiled code is in the cache.
    """
    from fsmdp.experiments.runner import compare

    with tempfile.TemporaryDirectory() as folder:
        compare(sweep(1, 5), Path(folder) / "warm", workers=1)
        began = time.perf_counter()
        results = compare(asked, Path(folder) / "runs", workers=workers)
        seconds = time.perf_counter() - began
        assert len(results.runs) == len(asked.runs)
        assert all(run.status == "done" for run in results.runs)
        return seconds


def seconds_of_loop(asked):
    """Wall clock of calling `learn` for the same runs, one after another."""
    import fsmdp
    from fsmdp.io.readers import read_basis, read_model

    def one(setting, episodes):
        model = read_model(setting.model.model)
        structure = model.structure(read_basis(model, setting.model.basis))
        learner = fsmdp.PSRLFactored(structure, setting.seed, known_rewards=model.rewards)
        fsmdp.learn(model, learner, episodes, setting.seed)

    one(asked.runs[0], 5)
    began = time.perf_counter()
    for setting in asked.runs:
        one(setting, setting.episodes)
    return time.perf_counter() - began


def speed(runs=16, episodes=250):
    """The same runs in a loop, with one worker and with two."""
    asked = sweep(runs, episodes)
    loop = seconds_of_loop(asked)
    alone, together = (seconds_of_sweep(asked, workers) for workers in (1, 2))
    console.print(
        f"{runs} runs of {episodes} episodes, ring 8, pairs, posterior sampling every episode:\n"
        f"  learn in a loop      {loop:6.1f} s\n"
        f"  compare, one worker  {alone:6.1f} s, overhead a run "
        f"[bold]{100 * (alone / loop - 1):.1f} %[/bold] (target below 10)\n"
        f"  compare, two workers {together:6.1f} s, "
        f"[bold]{alone / together:.2f}[/bold] times faster than one (target 1.7)"
    )


def report_size(runs=100, episodes=300):
    """Size of the report of many runs."""
    from fsmdp.experiments.runner import compare
    from fsmdp.report import write_report

    with tempfile.TemporaryDirectory() as folder:
        compare(sweep(runs, episodes, "sysadmin:ring:4", "tabular-psrl"), Path(folder) / "runs")
        began = time.perf_counter()
        written = write_report(Path(folder) / "runs", Path(folder) / "report")
        seconds = time.perf_counter() - began
        size = Path(written.path).stat().st_size / 1e6
        console.print(
            f"report of {runs} runs: [bold]{size:.1f} MB[/bold] (target below 10), {seconds:.1f} s"
        )


def main():
    speed()
    if "--report" in sys.argv:
        report_size()


if __name__ == "__main__":
    main()
