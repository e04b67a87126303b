"""Calls of Gymnasium environments: what they return is checked, what they raise is named.

Whatever is not as Gymnasium has it is a ModelError, so that one broken environment is one message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from fsmdp.errors import FsmdpError, ModelError
from fsmdp.foundation.checks import clip, is_number, show

RESET = ("observation", "info")
STEP = ("observation", "reward", "terminated", "truncated", "info")


class Step(NamedTuple):
    """What a step of an environment shows."""

    observation: Any
    reward: float
    terminated: bool
    truncated: bool
    info: Mapping[Any, Any]


def reset_environment(
    env: Any, seed: int | None = None, options: dict[str, Any] | None = None
) -> tuple[Any, Mapping[Any, Any]]:
    """Observation and info at the beginning of an episode."""
    placed: dict[str, Any] = {} if options is None else {"options": options}
    found = _call("reset", lambda: env.reset(seed=seed, **placed))
    observation, info = _parts(found, RESET, "reset")
    return observation, _as_info(info, "reset")


def step_environment(env: Any, action: Any) -> Step:
    """What comes of an action."""
    found = _parts(_call("step", lambda: env.step(action)), STEP, "step")
    observation, reward, terminated, truncated, info = found
    return Step(
        observation,
        read_number(reward, "reward"),
        _as_flag(terminated, "terminated"),
        _as_flag(truncated, "truncated"),
        _as_info(info, "step"),
    )


def read_number(value: Any, what: str) -> float:
    """A finite number, or a ModelError."""
    scalar = value.item() if isinstance(value, np.ndarray) and value.size == 1 else value
    if is_number(scalar) and np.isfinite(scalar):
        return float(scalar)
    raise ModelError(
        f"the environment's {what} is {show(value)}, expected a finite number; fix it or wrap it."
    )


def _call(name: str, call: Callable[[], Any]) -> Any:
    try:
        return call()
    except (FsmdpError, KeyboardInterrupt, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        raise ModelError(
            f"the environment's {name} failed ({type(error).__name__}: {clip(str(error))}); fix it "
            "or wrap it."
        ) from error


def _parts(found: Any, names: tuple[str, ...], call: str) -> tuple[Any, ...]:
    if not isinstance(found, tuple) or len(found) != len(names):
        raise ModelError(
            f"the environment's {call} returned {show(found)}, expected ({', '.join(names)}); wrap "
            "it if it was written for an older Gym."
        )
    return found


def _as_flag(value: Any, what: str) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise ModelError(
            f"the environment's {what} is {show(value)}, expected True or False; return a bool."
        )
    return bool(value)


def _as_info(info: Any, call: str) -> Mapping[Any, Any]:
    if not isinstance(info, Mapping):
        raise ModelError(
            f"the environment's {call} returned {show(info)} as info, expected a dictionary; "
            "return {} if there is nothing to say."
        )
    return info
