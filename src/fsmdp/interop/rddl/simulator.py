"""pyRDDLGym's simulator of a problem, and random walks in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import show_names
from fsmdp.interop.rddl.actions import Assignment
from fsmdp.interop.rddl.errors import InvalidError
from fsmdp.interop.rddl.grounding import Grounder
from fsmdp.interop.rddl.parsing import parse, pyrddlgym
from fsmdp.interop.rddl.problem import Problem
from fsmdp.interop.rddl.sources import Source


class Walker:
    """pyRDDLGym's own simulator of the lifted problem."""

    def __init__(
        self,
        source: Source,
        problem: Problem,
        actions: Mapping[str, Assignment],
        rng: np.random.Generator,
    ) -> None:
        from pyRDDLGym.core.simulator import RDDLSimulator

        lifted, _ = parse(source)
        with pyrddlgym(source, []):
            self.simulator = RDDLSimulator(lifted, rng=rng, keep_tensors=True)
        self.source = source
        self.lifted = lifted
        self.rng = rng
        self.horizon = problem.horizon
        self.refused = 0
        self.has_integers = any(values is None for values in problem.values.values())
        grounder = Grounder(lifted)
        self._places = {
            grounder.label(name, arguments): (name, arguments)
            for name in lifted.action_fluents
            for arguments in grounder.instances(name)
        }
        self._assignments = actions

    def walk(
        self, random_start: bool, values: Sequence[tuple[int, ...]]
    ) -> Iterator[tuple[list[int], str, float, list[int]]]:
        """State, action, reward and a next state of each step, values by position.

        The walk goes on from another next state, drawn for itself.
        """
        names = list(self._assignments)
        index = [{value: at for at, value in enumerate(known)} for known in values]
        self.simulator.reset()
        if random_start:
            self._randomise()
        before = self._state(index)
        for _ in range(self.horizon):
            action = names[int(self.rng.integers(len(names)))]
            tensors = self._tensors(self._assignments[action])
            here = dict(self.simulator.subs)
            try:
                reward = self._step(tensors)
                after = self._state(index)
                self.simulator.subs = here
                self._step(tensors)
            except InvalidError:
                # States that no walk from the start reaches may make no sense to the simulator.
                if not random_start:
                    raise
                self.refused += 1
                return
            yield before, action, reward, after
            before = self._state(index)

    def _step(self, tensors: Mapping[str, Any]) -> float:
        with pyrddlgym(self.source, []):
            return float(self.simulator.step(tensors)[1])

    def _tensors(self, assignment: Assignment) -> dict[str, Any]:
        actions = {name: np.copy(value) for name, value in self.simulator.noop_actions.items()}
        for label, value in assignment:
            name, arguments = self._places[label]
            actions[name][tuple(arguments)] = value
        return actions

    def _state(self, index: Sequence[dict[int, int]]) -> list[int]:
        flat = [np.ravel(self.simulator.subs[name]) for name in self.lifted.state_fluents]
        values = [int(value) for value in np.concatenate(flat)]
        for position, (at, value) in enumerate(zip(index, values, strict=True)):
            if value not in at:
                raise ModelError(
                    f"the simulator gives state fluent {position + 1} the value {value}, which the "
                    f"model does not have; expected one of {show_names(map(str, at))}."
                )
        return [at[value] for at, value in zip(index, values, strict=True)]

    def _randomise(self) -> None:
        for name, range_name in self.lifted.state_ranges.items():
            old = np.asarray(self.simulator.subs[name])
            size = 2 if range_name == "bool" else len(self.lifted.type_to_objects[range_name])
            drawn = self.rng.integers(size, size=old.shape)
            self.simulator.subs[name] = np.asarray(drawn).astype(old.dtype)
