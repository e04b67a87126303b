"""Digests of plans and learning runs: compare those of two commits to see that no number changed.

python benchmarks/_fingerprints.py > before.txt; git switch ...; python ... > after.txt; diff them.
"""

import hashlib
import warnings

import numpy as np

import fsmdp

warnings.simplefilter("ignore")


def models():
    ring = fsmdp.domains.sysadmin
    yield "ring 4", ring(4)
    yield "ring 8", ring(8)
    yield "star 6", ring(6, topology="star")
    yield "two-way ring 6", ring(6, topology="bidirectional-ring", horizon=5)
    yield "discounted ring 5", ring(5, horizon=None, discount=0.9)
    yield "maintenance", fsmdp.domains.maintenance(3)
    for seed in range(4):
        yield f"random {seed}", fsmdp.domains.random_model(seed, 4, 3, 4)


def digest(*arrays):
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array, dtype=np.float64).tobytes())
    return found.hexdigest()[:16]


def learners(model):
    structure = model.structure(fsmdp.Basis.pairs(model))
    for confidence in ("weissman", "hoeffding", "bernstein"):
        yield confidence, fsmdp.UCRLFactored(structure, confidence=confidence, seed=1)
    yield "posterior", fsmdp.PSRLFactored(structure, seed=1)
    known = model.rewards
    yield "known rewards", fsmdp.UCRLFactored(structure, known_rewards=known, seed=1)
    yield "posterior, known rewards", fsmdp.PSRLFactored(structure, known_rewards=known, seed=1)
    for baseline in (fsmdp.UCBVI, fsmdp.UCRL2, fsmdp.TabularPSRL):
        yield baseline.__name__, baseline(structure, seed=1)


def plans():
    for name, model in models():
        for method in ("programs", "stagewise", "joint", "cutting-planes"):
            if model.horizon is None and method == "stagewise":
                continue
            basis = fsmdp.Basis.pairs(model) if method != "cutting-planes" else None
            plan = fsmdp.plan(model, basis, method=method)
            print(
                name,
                method,
                plan.status,
                repr(plan.upper_bound),
                digest(plan.weights, plan.bound.weights, plan.q_entries, plan.certificate.lifts),
                repr(fsmdp.rollout(model, plan, 50, seed=1).mean),
                flush=True,
            )


def histories():
    for name, model in models():
        if name not in ("ring 4", "star 6", "random 0", "random 1"):
            continue
        for learner, made in learners(model):
            history = fsmdp.learn(model, made, episodes=60, seed=2)
            print(
                name,
                learner,
                digest(history.returns, history.optimistic_values, history.slacks),
                history.replans.sum(),
                repr(history.returns.mean()),
                flush=True,
            )


def main():
    plans()
    histories()


if __name__ == "__main__":
    main()
