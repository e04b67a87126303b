"""Results made by hand: what they should come out as is known."""

import numpy as np
import polars

from fsmdp.experiments.specification import LearnerSetting, ModelSetting, Specification
from fsmdp.experiments.store import (
    EPISODE_COLUMNS,
    TIMING_COLUMNS,
    ModelFacts,
    Results,
    Run,
    RunFiles,
    Store,
    empty_frame,
    source_of,
)

BEST = 9.0

LEARNERS = (
    LearnerSetting("ucrl", "ucrl", "UCRL-Factored", {"preset": "practical", "scale": 1.0}),
    LearnerSetting("ucrl-tight", "ucrl", "UCRL tight", {"preset": "practical", "scale": 0.1}),
    LearnerSetting("plan", "plan", "Known-model plan", {}),
    LearnerSetting("random", "random", "Random", {}),
)

# Mean of V* - return in episode k.
SHORTFALLS = {
    "ucrl": lambda k: 1.5 / np.sqrt(k),
    "ucrl-tight": lambda k: 1.0 / np.sqrt(k),
    "plan": lambda k: 0.0 * k,
    "random": lambda k: 2.0 + 0.0 * k,
}


def facts_of_ring(n=6, known=True, names=None, bound=9.5, episodes=200, text="sysadmin:ring:6"):
    grid = np.unique(np.geomspace(1, episodes, 12).round())
    return ModelFacts(
        text=text,
        basis="singles",
        repr="FactoredMDP(...)",
        variables=n,
        actions=n + 1,
        log10_states=n * np.log10(2),
        horizon=10,
        discount=1.0,
        start_value_exact=BEST if known else None,
        plan_upper_bound=bound,
        plan_policy_mean=8.9,
        plan_policy_standard_error=0.02,
        induced_width=2,
        variable_names=tuple(names or (f"machine-{i}" for i in range(n))),
        edges=tuple((i, (i + 1) % n) for i in range(n)),
        elimination_order=tuple(range(n)),
        w_norm=12.0,
        regret_bound={
            "episodes": grid.tolist(),
            "general": {"terms": {}, "total": (4e4 * np.sqrt(grid)).tolist()},
        },
    )


def run_of(setting, shortfall, noise=0.3, known=True):
    k = np.arange(1, setting.episodes + 1)
    rng = np.random.default_rng([setting.seed, len(setting.id)])
    returns = BEST - shortfall(k) + noise * rng.standard_normal(setting.episodes)
    optimistic = setting.learner.learner == "ucrl"
    nothing = [None] * setting.episodes
    values = BEST + 3.0 / np.sqrt(k)
    episodes = polars.DataFrame(
        {
            "episode": k,
            "returns": returns,
            "optimistic_values": values if optimistic else nothing,
            "slacks": 0.2 / k if optimistic else 0.0 * k,
            "widths": 3.0 / np.sqrt(k) if optimistic else 0.0 * k,
            "replans": (k & (k - 1)) == 0 if optimistic else k == 1,
            "lifts": 0.0 * k,
            "w_norms": 0.0 * k,
            "observable_regret_bound": np.cumsum(values - returns) + 5 * np.sqrt(k)
            if optimistic
            else nothing,
            "regret": np.cumsum(BEST - returns) if known else nothing,
        },
        schema_overrides={name: getattr(polars, kind) for name, kind in EPISODE_COLUMNS.items()},
    )
    timings = polars.DataFrame(
        {
            "episode": k,
            "seconds_planning": np.where(episodes["replans"], 0.01, 0.0),
            "seconds_acting": 0.001 + 0.0 * k,
        }
    )
    heuristic = setting.learner.options.get("scale", 1.0) != 1
    return finished(setting, "done", heuristic, None, episodes, timings)


def failed_run(setting, message):
    empty = empty_frame(EPISODE_COLUMNS), empty_frame(TIMING_COLUMNS)
    return finished(setting, "failed", False, message, *empty)


def finished(setting, status, heuristic, message, episodes, timings):
    named = {
        "id": setting.id,
        "model": setting.model.id,
        "learner": setting.learner.id,
        "label": setting.learner.label,
        "seed": setting.seed,
        "status": status,
        "heuristic": heuristic,
        "message": message,
    }
    facts = named | {"options": dict(setting.learner.options), "source": source_of(setting)}
    facts |= {"document_sha256": None, "episodes": setting.episodes, "seconds": 1.25}
    facts |= {"seconds_planning": 0.08}
    return Run(**named, facts=facts, episodes=episodes, timings=timings)


PROVENANCE = {
    "command": "fsmdp compare ring.toml",
    "created": "2026-01-05T10:00:00+00:00",
    "finished": "2026-01-05T10:01:00+00:00",
    "versions": {"fsmdp": "0.1.0", "numpy": "2.2.0"},
    "python": "3.11.7",
    "commit": "0123abc",
    "platform": "Linux",
    "executor": "local",
    "workers": 2,
}


def fabricate(
    models=None, learners=LEARNERS, seeds=3, episodes=200, name="ring", missing=(), failing=()
):
    """Results over models (id -> facts); ids in `missing` are absent, those in `failing` failed."""
    models = models or {"ring-6": facts_of_ring(episodes=episodes)}
    specification = Specification(
        name,
        episodes,
        tuple(range(seeds)),
        50,
        tuple(ModelSetting(model, facts.text, facts.basis) for model, facts in models.items()),
        tuple(learners),
    )
    runs = []
    for setting in specification.runs:
        if setting.id in failing:
            runs.append(failed_run(setting, "SizeError: 2^60 states, the limit is 2^25"))
        elif setting.id not in missing:
            shortfall = SHORTFALLS.get(setting.learner.id, SHORTFALLS["ucrl"])
            known = models[setting.model.id].start_value_exact is not None
            runs.append(run_of(setting, shortfall, known=known))
    return Results(specification, models, tuple(runs), PROVENANCE, tuple(missing))


def write_folder(results, folder):
    """The same results as files."""
    store = Store(folder)
    store.make_folder()
    store.make_run_folders(results.specification)
    store.write_specification(results.specification, None)
    store.write_models(results.models)
    store.write_provenance(results.provenance)
    for run in results.runs:
        done = run.status == "done"
        store.write_run(run.id, RunFiles.of(run) if done else RunFiles(run.facts))
    return folder
