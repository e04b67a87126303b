"""Small RDDL problems, written to files."""

from pathlib import Path

import pytest

import fsmdp

pytest.importorskip("pyRDDLGym")

DOMAIN = """
domain little {{
    requirements = {{ reward-deterministic }};
    types {{ {types} }};
    pvariables {{ {pvariables} }};
    cpfs {{ {cpfs} }};
    reward = {reward};
    {sections}
}}
"""

INSTANCE = """
non-fluents nf_little {{
    domain = little;
    objects {{ {objects} }};
    non-fluents {{ {constants} }};
}}
instance inst_little {{
    domain = little;
    non-fluents = nf_little;
    init-state {{ {start} }};
    {limit}
    horizon = {horizon};
    discount = {discount};
}}
"""


def write_problem(
    folder: Path,
    *,
    cpfs: str,
    pvariables: str,
    reward: str = "0",
    types: str = "thing : object;",
    objects: str = "thing : {t1, t2, t3};",
    constants: str = "UNUSED = 1;",
    start: str = "on(t1);",
    limit: str = "max-nondef-actions = 1;",
    sections: str = "",
    horizon: int = 5,
    discount: float = 1.0,
) -> tuple[Path, Path]:
    """Two files; every problem has `on(thing)`, `press(thing)` and `UNUSED`."""
    common = (
        "on(thing) : { state-fluent, bool, default = false };"
        "press(thing) : { action-fluent, bool, default = false };"
        "UNUSED : { non-fluent, real, default = 0.0 };"
    )
    domain, instance = folder / "domain.rddl", folder / "instance.rddl"
    domain.write_text(
        DOMAIN.format(
            types=types,
            pvariables=common + pvariables,
            cpfs=cpfs,
            reward=reward,
            sections=sections,
        )
    )
    instance.write_text(
        INSTANCE.format(
            objects=objects,
            constants=constants,
            start=start,
            limit=limit,
            horizon=horizon,
            discount=discount,
        )
    )
    return domain, instance


def load_problem(folder: Path, actions: str = "auto", **parts) -> fsmdp.FactoredMDP:
    return fsmdp.rddl.load(*write_problem(folder, **parts), actions=actions, cache=False)


def next_distribution(model, variable, state, action):
    """P(next value of a variable | state, action)."""
    from fsmdp.model.marginals import compute_marginal

    names = [one.name for one in model.variables]
    cases = compute_marginal((names.index(variable),), model.dynamics, model.sizes)
    found = cases.at(model.action_index(action))
    return found.probabilities[tuple(state[p] for p in found.parent_scope)]


KEEP = "on'(?t) = KronDelta(on(?t) | press(?t));"
