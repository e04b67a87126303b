"""Learners against baselines on a ring of machines, with a figure.

Run: python examples/compare_learners.py [FOLDER]
"""

import sys

import matplotlib

import fsmdp

matplotlib.use("Agg")  # no screen is needed


def main(folder: str = "runs/example") -> None:
    """Two learners that know the structure, one that does not, and chance."""
    results = fsmdp.compare(
        "sysadmin:ring:4",
        [
            {"learner": "ucrl", "known_rewards": True, "label": "optimism"},
            {"learner": "psrl", "known_rewards": True, "label": "posterior sampling"},
            {"learner": "tabular-psrl", "label": "without structure"},
            {"learner": "random", "label": "chance"},
        ],
        seeds=6,
        episodes=100,
        basis="pairs",
        output=folder,
    )
    for label in dict.fromkeys(run.label for run in results.runs):
        ended = [run.episodes["regret"][-1] for run in results.runs if run.label == label]
        print(f"{label}: regret {sum(ended) / len(ended):.1f} on average of {len(ended)} runs")
    axes = fsmdp.plot.compare(folder, what="regret")
    axes.figure.savefig(f"{folder}/regret.png")
    print(f"{folder}/regret.png")


if __name__ == "__main__":
    main(*sys.argv[1:])
