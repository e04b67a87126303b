"""Unknown structure: which machines depend on which is found from a log, and then learnt with.

Nobody says how the machines of a network are wired. A log of random actions is enough to find out,
and a learner that is told what was found soon does as well as one that knew from the start.

Run: python examples/unknown_structure.py
"""

import fsmdp


def main() -> None:
    """Discover, compare with the truth, and learn."""
    model = fsmdp.domains.sysadmin(6, topology="three-legs", horizon=10)
    found = fsmdp.discover(model, episodes=2000, seed=0)  # its probabilities are not looked at
    for variable in model.variables:
        wired = [model.variables[i].name for i in model.parents(variable.name)]
        agreed = set(found.parents[variable.name]) == set(wired)
        depends_on = ", ".join(found.parents[variable.name])
        print(f"{variable.name} depends on {depends_on}: {'right' if agreed else 'wrong'}")

    basis = fsmdp.Basis.singles(model)
    told = {
        "discovered": found.structure(basis),
        "known": model.structure(basis),
    }
    for name, structure in told.items():
        learner = fsmdp.PSRLFactored(structure, seed=0, known_rewards=model.rewards)
        history = fsmdp.learn(model, learner, episodes=300, seed=1)
        print(f"structure {name}: {history.returns[-100:].mean():.2f} an episode")


if __name__ == "__main__":
    main()
