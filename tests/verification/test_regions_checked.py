"""Region proofs through the checker of plan files: what it proves, and what it refuses."""

import copy
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.bounds.test_regions import KINDS, MIDDLE, SMALL, nothing
from tests.verification.checked import model_bytes, plan_bytes

import fsmdp
from fsmdp.bounds.regions.choose import cover
from fsmdp.bounds.regions.layout import Parts
from fsmdp.bounds.regions.minimise import RegionBound, descend
from fsmdp.bounds.regions.prices import PricedRegions
from fsmdp.bounds.regions.proof import RegionProof
from fsmdp.reductions.reduction import unchanged
from fsmdp.verification import checker
from fsmdp.verification.regions import region_bound
from fsmdp.verification.values import start_values


def proof_of(model, limits, iterations=20):
    parts = Parts(model)
    regions = PricedRegions(parts, cover(parts, *limits))
    for _ in descend(regions, 0.1, iterations, nothing):
        pass
    bound, prices, unit = regions.certified(regions.theta)
    return RegionProof.of(model, unchanged(model), RegionBound(bound, regions, prices, unit))


def given(proof, mine, json=None, arrays=None):
    """The proof as the checker reads it from a file, or changed ones."""
    json, arrays = json or proof.json, arrays or proof.arrays
    members = {}
    for name in ("features", "members", "prices"):
        array = np.ascontiguousarray(arrays[name])
        shape = f"({array.shape[0]}, {array.shape[1]})"
        head = f"{{'descr': '{array.dtype.str}', 'fortran_order': False, 'shape': {shape}, }}"
        head += " " * (63 - (len(head) + 10) % 64) + "\n"
        start = b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little")
        members[name] = start + head.encode() + array.tobytes()
    return checker.read_regions(json, members, mine)


def proved(proof, mine, json=None, arrays=None):
    return region_bound(mine, given(proof, mine, json, arrays), lambda _: None)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_the_checker_proves_what_regions_claim(kind, seed):
    model = KINDS[kind](seed + 20)
    optimal = fsmdp.solve_exactly(model).start_value
    mine = checker.read_model(model_bytes(model))
    for limits in (SMALL, MIDDLE):
        proof = proof_of(model, limits)
        found = float(proved(proof, mine))
        assert found >= optimal - 1e-12 * max(1, abs(optimal))
        size = max(1.0, model.largest_size_of_return)
        assert found == pytest.approx(proof.upper_bound, abs=1e-6 * size)


def mutated(rng, proof, mine):
    """A proof with one number or name changed at random."""
    json = copy.deepcopy(proof.json)
    arrays = {name: array.copy() for name, array in proof.arrays.items()}
    regions = json["regions"]
    region = regions[rng.integers(len(regions))]
    kind = rng.integers(8)
    if kind == 0 and arrays["prices"].size:  # a price
        at = tuple(rng.integers(n) for n in arrays["prices"].shape)
        arrays["prices"][at] += int(rng.choice([-1, 1])) * int(2 ** rng.integers(40))
    elif kind == 1 and region["shares"]:  # a part of a reward
        region["shares"][rng.integers(len(region["shares"]))][1] += 1
    elif kind == 2 and region["boundary"]:  # a variable that a region depends on
        region["boundary"].pop(rng.integers(len(region["boundary"])))
    elif kind == 3 and region["interior"]:
        region["interior"].pop(rng.integers(len(region["interior"])))
    elif kind == 4 and json["sets"]:  # a set of actions
        chosen = json["sets"][rng.integers(len(json["sets"]))]
        chosen[rng.integers(len(chosen))] = int(rng.integers(len(mine.draws)))
    elif kind == 5 and len(arrays["members"]):  # who has a price, or on what
        at = tuple(rng.integers(n) for n in arrays["members"].shape)
        arrays["members"][at] = rng.integers(-1, 5)
    elif kind == 6 and len(arrays["features"]):
        at = tuple(rng.integers(n) for n in arrays["features"].shape)
        arrays["features"][at] = rng.integers(-1, 4)
    else:
        json["unit"] = json["unit"] * float(rng.choice([0.5, 2.0, 3.0, -1.0]))
    return json, arrays


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_proof_is_refused_or_still_proves_a_bound(kind, request):
    count = 400 if request.config.getoption("-m") == "slow" else 60
    refused = 0
    for seed in range(2):
        model = KINDS[kind](seed + 40)
        optimal = fsmdp.solve_exactly(model).start_value
        mine = checker.read_model(model_bytes(model))
        proof = proof_of(model, SMALL, 8)
        rng = np.random.default_rng(seed)
        for _ in range(count):
            try:
                found = proved(proof, mine, *mutated(rng, proof, mine))
            except checker.BadInputError:
                refused += 1
                continue
            assert found >= optimal - 1e-12 * max(1, abs(optimal))
    assert refused > count / 4


def test_prices_that_do_not_cancel_and_parts_that_do_not_add_up_are_refused():
    model = fsmdp.domains.sysadmin(6)
    mine = checker.read_model(model_bytes(model))
    proof = proof_of(model, SMALL)
    arrays = dict(proof.arrays)
    arrays["prices"] = arrays["prices"].copy()
    arrays["prices"][0, 0] -= 1
    with pytest.raises(checker.BadInputError, match="prices do not add up to 0"):
        proved(proof, mine, None, arrays)
    json = copy.deepcopy(proof.json)
    next(one for one in json["regions"] if one["shares"])["shares"][0][1] += 1
    with pytest.raises(checker.BadInputError, match="do not add up to 1"):
        proved(proof, mine, json)
    json = copy.deepcopy(proof.json)
    json["unit"] *= 3
    with pytest.raises(checker.BadInputError, match="power of two"):
        proved(proof, mine, json)


def test_a_lower_claim_than_regions_prove_is_not_proved():
    model = fsmdp.domains.sysadmin(6, horizon=5)
    mine = checker.read_model(model_bytes(model))
    plan = fsmdp.plan(model, method="programs", basis=fsmdp.Basis.singles(model))
    proof = proof_of(model, SMALL)
    found = proved(proof, mine)
    for amount, good in ((Fraction(1, 10**6), True), (-Fraction(1, 10**6), False)):
        claim = checker.read_claim(plan_bytes(plan), mine)
        tighter = replace(claim, at_start=found + amount, start=given(proof, mine))
        loose = replace(tighter, weights=tuple((row[0] + 100, *row[1:]) for row in claim.weights))
        loose = replace(loose, upper_bound=claim.upper_bound + 100)
        verdict = checker.check(mine, loose, start_values=start_values)
        assert verdict.proved is good
        assert verdict.in_part is not good


def test_a_saved_plan_is_proved_by_the_command_line(tmp_path):
    model = fsmdp.domains.sysadmin(14, horizon=10)
    plan = fsmdp.plan(model, exact=False, gap=0.5)
    fsmdp.save(model, tmp_path / "model.json")
    plan.save(tmp_path / "plan.npz")
    done = subprocess.run(
        [sys.executable, "-m", "fsmdp", "verify", "model.json", "plan.npz"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert fsmdp.Plan.load(tmp_path / "plan.npz").upper_bound == pytest.approx(
        plan.upper_bound, rel=1e-6
    )
