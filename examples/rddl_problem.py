"""An RDDL problem end to end: load, plan, check the bound, act in pyRDDLGym's own simulator.

Needs the extra `rddl`: pip install ".[rddl]" in a checkout.

Run: python examples/rddl_problem.py
"""

import warnings

import pyRDDLGym

import fsmdp

DOMAIN, INSTANCE = "SkillTeaching_MDP_ippc2011", 1


def main() -> None:
    """Everything that one does with a problem of the planning competitions."""
    warnings.simplefilter("ignore")  # pyRDDLGym talks about its visualisers
    model = fsmdp.rddl.load(DOMAIN, INSTANCE)
    print(model)
    plan = fsmdp.plan(model, time_limit=20)
    print(plan)
    print(plan.gap.statement())

    ours = fsmdp.rollout(model, plan, episodes=1000)
    print(f"our simulator:   {ours.mean:.2f} ± {ours.standard_error:.2f}")
    environment = pyRDDLGym.make(DOMAIN, str(INSTANCE))
    theirs = fsmdp.rddl.agent(plan).evaluate(environment, episodes=30, seed=0)
    print(f"their simulator: {theirs['mean']:.2f} ± {theirs['std'] / 30**0.5:.2f}")


if __name__ == "__main__":
    main()
