"""Digests of twenty plans: run it on two commits and compare, to see that no number changed.

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


def main():
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
                digest(plan.weights, plan.bound_weights, plan.q_entries, plan.certificate.lifts),
                repr(fsmdp.rollout(model, plan, 50, seed=1).mean),
                flush=True,
            )


if __name__ == "__main__":
    main()
