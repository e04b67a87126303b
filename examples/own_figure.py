"""A figure of one's own: a network, how the solver closed in, and an episode, side by side.

Everything that draws takes Matplotlib axes and returns them, so that a figure for a paper is put
together from parts.

Run: python examples/own_figure.py [FILE]
"""

import sys

import matplotlib

import fsmdp

matplotlib.use("Agg")  # no screen is needed

import matplotlib.pyplot as plt


def main(path: str = "ring.png") -> None:
    """Plan a ring of machines and draw three sides of it."""
    model = fsmdp.domains.sysadmin(8, topology="bidirectional-ring", horizon=30)
    plan = fsmdp.plan(model, fsmdp.Basis.singles(model), time_limit=10)
    figure, (network, closing, episode) = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    model.plot(ax=network)
    plan.plot(ax=closing)
    fsmdp.plot.trajectories(model, plan, ax=episode)
    closing.set_title("policy and bound")
    episode.set_title("an episode")
    figure.savefig(path, dpi=120)
    print(f"the policy earns {plan.incumbent.mean:.2f}, no policy more than {plan.upper_bound:.2f}")
    print(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
