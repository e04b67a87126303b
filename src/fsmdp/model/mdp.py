"""FactoredMDP: the generative truth, from which one can simulate."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_items, as_tuple, is_whole, plural, show
from fsmdp.foundation.equality import Compared
from fsmdp.foundation.numbers import count_of_states, facts_table
from fsmdp.model.actions import ActionSpace, as_actions
from fsmdp.model.basis import Basis, check_basis
from fsmdp.model.cases import Case, Cases
from fsmdp.model.conditionals import (
    Ancestry,
    Conditional,
    Dynamics,
    Kernel,
    float32_hint,
    normalised,
    resolve_dynamics,
)
from fsmdp.model.conditions import (
    Conditions,
    as_allowed,
    as_terminal,
    resolve_conditions,
    written_conditions,
)
from fsmdp.model.functions import ROW_TOLERANCE
from fsmdp.model.marginals import EPSILON, Marginals, compute_marginals
from fsmdp.model.rewards import Reward, resolve_rewards
from fsmdp.model.structure import (
    RewardTerm,
    Structure,
    as_rewards,
    check_horizon,
    show_end,
    sum_of_discounts,
)
from fsmdp.model.tables import Floats, Table, read_only, read_only_array
from fsmdp.model.variables import (
    Scope,
    State,
    Variable,
    as_names,
    as_variables,
    check_state,
    find_positions,
    positions_by_name,
    show_state,
    table_size,
)

Integers = NDArray[np.int64]


def contexts_of(ancestry: Ancestry, sizes: Sequence[int], n_variables: int) -> Integers | None:
    """A number for each assignment of the parents: equal where no kernel can tell them apart.

    None if all are different. `sizes` are those of state variables and action variables.
    Cost: the kernels' tables, and the assignments of all parents once for each of them.
    """
    scope = ancestry.parent_scope
    shape = tuple(sizes[position] for position in scope)
    columns = []
    for kernel in ancestry.kernels:
        rows = _rows(kernel, n_variables)
        spread = [sizes[p] if p in kernel.parents else 1 for p in scope]
        columns.append(np.broadcast_to(rows.reshape(spread), shape).ravel())
    distinct, number = np.unique(np.stack(columns), axis=1, return_inverse=True)
    if distinct.shape[1] == table_size(shape):
        return None
    return np.asarray(number, dtype=np.int64).ravel()


def _rows(kernel: Kernel, n_variables: int) -> Integers:
    """A number for each assignment of a kernel's parents, the same where a parent is idle.

    Under given values of action variables a state variable is idle if nothing depends on it.
    """
    n_parents = len(kernel.parents)
    shape = kernel.table.shape[:n_parents]
    n_state = sum(parent < n_variables for parent in kernel.parents)
    found = np.zeros(shape, dtype=np.int64)
    first = 0
    for chosen in np.ndindex(*shape[n_state:]):
        at = (slice(None),) * n_state + chosen
        part = kernel.table[at]
        kept = [
            1 if (np.diff(part, axis=axis) == 0).all() else size
            for axis, size in enumerate(shape[:n_state])
        ]
        count = table_size(kept)
        found[at] = first + np.arange(count).reshape(kept)
        first += count
    return found


Start = int | Floats
"""How a variable starts: at a value, or drawn from a distribution."""


LARGEST_RETURN = 1e307
"""In size, so that sums over steps, and differences of them, stay finite."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FactoredMDP(Compared):
    """A Markov decision process whose state is a vector of small variables.

    Each step draws the conditionals in order; a conditional may depend on current values
    (`parents`), at values drawn before it in the same step and at latents (`drawn`), so next
    values may be correlated given (state, action). Rewards are sums of local terms.
    `initial` gives a value, a label or a distribution for each variable (0 for those it does not
    name).

    `actions` is a list of names, which cases group, or `Actions`: variables that stand among the
    parents, so that many things can be decided at once.

    `allowed` says which actions are possible in which states: an action is allowed in a state if
    every entry that speaks of it is nonzero. `terminal` are tables over state variables: where one
    is not zero the episode is over, without a further action or reward. The reward of the step that
    leads there counts.

    Models are equal if they are built of equal parts in the same order.
    """

    variables: tuple[Variable, ...]
    actions: ActionSpace
    conditionals: tuple[Conditional, ...]
    rewards: tuple[Reward, ...]
    horizon: int | None
    discount: float
    latents: tuple[Variable, ...]
    initial: tuple[Start, ...]
    allowed: tuple[Case, ...]
    terminal: tuple[Table, ...]
    dynamics: Dynamics = field(init=False, compare=False)
    reward_means: tuple[Cases[Table], ...] = field(init=False, compare=False)
    conditions: Conditions = field(init=False, compare=False)

    def __init__(
        self,
        variables: Sequence[Variable],
        actions: Sequence[str],
        conditionals: Sequence[Conditional],
        rewards: Sequence[Reward],
        horizon: int | None,
        initial: Mapping[str, int | str | ArrayLike] | Sequence[int | str] | None = None,
        discount: float = 1.0,
        latents: Sequence[Variable] = (),
        allowed: Sequence[Case] = (),
        terminal: Sequence[Table] = (),
    ) -> None:
        def store(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        store("variables", as_variables(variables, "variables"))
        store("actions", as_actions(actions))
        remedy = "give [Conditional(children, cases), ...]"
        store("latents", as_variables(latents, "latents"))
        written = as_tuple(conditionals, Conditional, "conditionals", remedy)
        known = {variable.name: variable for variable in (*self.inputs, *self.latents)}
        store("conditionals", tuple(conditional.filled(known) for conditional in written))
        store("rewards", as_rewards(rewards))
        if not self.variables:
            raise ModelError("variables: expected at least one, found none; name what changes.")
        check_horizon(horizon, discount)
        store("horizon", None if horizon is None else int(horizon))
        store("discount", float(discount))
        store(
            "dynamics",
            resolve_dynamics(
                self.conditionals,
                self.variables,
                self.latents,
                self.actions.cases,
                self.actions.variables,
            ),
        )
        store("initial", _resolve_initial(initial, self.variables))
        store("allowed", as_allowed(allowed, self.inputs))
        parts = self.allowed, as_terminal(terminal), self.variables, self.actions
        store("conditions", resolve_conditions(*parts))
        names = [variable.name for variable in self.inputs]
        store("terminal", tuple(written_conditions(self.conditions, names)[1]))
        self._check_start()
        self._resolve_rewards()

    def _check_start(self) -> None:
        """Refuse a certain start in which the episode is over already, or nothing is allowed."""
        if not self.conditions or not all(isinstance(start, int) for start in self.initial):
            return
        start = [int(value) for value in self.initial]
        if self.conditions.is_stuck(start):
            raise self.conditions.stuck(start)
        if self.conditions.is_terminal(np.array([start], dtype=np.int64))[0]:
            raise ModelError(
                "initial: the episode would be over before it begins, since the initial state "
                f"{show_state(start, self.variables)} is terminal; start elsewhere, or correct "
                "`terminal`."
            )

    def replace(self, **changes: Any) -> FactoredMDP:
        """The same model with other parts, which are named as in the constructor."""
        parts = {one.name: getattr(self, one.name) for one in fields(self) if one.compare}
        return FactoredMDP(**{**parts, **changes})

    def with_rewards(self, rewards: Sequence[Reward]) -> FactoredMDP:
        """The same model with other reward terms. Cost: to check these."""
        made = object.__new__(FactoredMDP)
        for one in fields(self):
            object.__setattr__(made, one.name, getattr(self, one.name))
        object.__setattr__(made, "rewards", as_rewards(rewards))
        made._resolve_rewards()
        return made

    def _resolve_rewards(self) -> None:
        known = {variable.name: variable for variable in self.inputs}
        object.__setattr__(self, "rewards", tuple(one.filled(known) for one in self.rewards))
        means = resolve_rewards(self.rewards, self.inputs, self.actions.cases)
        object.__setattr__(self, "reward_means", means)
        if not self.largest_size_of_return <= LARGEST_RETURN:
            raise ModelError(
                f"rewards could add up to {self.largest_size_of_return:.3g} in an episode, "
                f"expected at most {LARGEST_RETURN:g} in size; measure them in a larger unit."
            )

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        # Copies are built, and so checked, like any other model.
        parts = (self.variables, self.actions, self.conditionals, self.rewards, self.horizon)
        more = self.initial, self.discount, self.latents, self.allowed, self.terminal
        return FactoredMDP, (*parts, *more)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of values of each variable."""
        return tuple(variable.size for variable in self.variables)

    @property
    def inputs(self) -> tuple[Variable, ...]:
        """All that a parent may be: state variables, then action variables."""
        return (*self.variables, *self.actions.variables)

    @property
    def input_sizes(self) -> tuple[int, ...]:
        """Number of values of each input."""
        return tuple(variable.size for variable in self.inputs)

    @property
    def n_states(self) -> int:
        """Number of states, exactly, however large."""
        return table_size(self.sizes)

    @property
    def n_actions(self) -> int:
        """Number of actions, joint ones counted by themselves, however many.

        Where these are too many to list, those that are forbidden are counted with the others.
        """
        return self.actions.n_actions

    @property
    def log10_states(self) -> float:
        """Decimal logarithm of the number of states."""
        return math.fsum(math.log10(size) for size in self.sizes)

    def parents(self, variable: str | int) -> Scope:
        """Variables on whose current values the next value may depend, under some action.

        Parents as declared, also through what is drawn in the same step, and whatever the
        probabilities are: a parent on which nothing happens to depend is still one.
        """
        (position,) = find_positions([variable], positions_by_name(self.variables), "parents")
        cases = self.dynamics.ancestry((position,))
        found = {parent for ancestry in cases for parent in ancestry.parent_scope}
        return tuple(sorted(parent for parent in found if parent < len(self.variables)))

    def marginals(self, basis: Basis, check: Callable[[], None] | None = None) -> Marginals:
        """Distribution of each basis function's next values, all else summed out.

        `check` is called now and then, and may raise to end it.
        """
        bound = check_basis(basis).bind(self.variables)
        return compute_marginals(bound, self.dynamics, self.input_sizes, check)

    def structure(self, basis: Basis) -> Structure:
        """What a learner is told: parents as declared, whatever the probabilities are.

        So is independence: variables are drawn together if what has to be drawn for one of them is
        drawn for the other too.
        """
        bound = check_basis(basis).bind(self.variables)
        groups = self.dynamics.groups(len(self.variables))
        by_scope = {
            scope: self.dynamics.ancestry(scope).map(lambda ancestry: ancestry.parent_scope)
            for scope in set(bound.scopes)
        }
        return Structure(
            self.variables,
            self.actions,
            self.horizon,
            self.discount,
            tuple(
                RewardTerm(
                    reward.name,
                    means.map(lambda table: table.scope),
                    reward.low,
                    reward.high,
                    reward.sigma,
                )
                for reward, means in zip(self.rewards, self.reward_means, strict=True)
            ),
            bound,
            tuple(by_scope[scope] for scope in bound.scopes),
            self.conditions,
            self._contexts(bound.scopes),
            groups,
            tuple(
                self.dynamics.ancestry(group).map(lambda ancestry: ancestry.parent_scope)
                for group in groups
            ),
            self._contexts(groups),
        )

    def _contexts(self, scopes: Sequence[Scope]) -> tuple[Any, ...]:
        """Where parents do not matter under some values of action variables, by scope."""
        if not self.actions.variables:
            return ()
        sizes, n = self.input_sizes, len(self.variables)
        by_scope = {
            scope: contexts_of(self.dynamics.ancestry(scope).groups[0], sizes, n)
            for scope in set(scopes)
            if scope
        }
        return tuple(by_scope.get(scope) for scope in scopes)

    def action_values(self, action: object) -> tuple[int, ...]:
        """What an action gives to the action variables; nothing where actions are a list.

        An action is written as a name, a position, or, if it is made of variables, as a dictionary
        of those that are nonzero or a sequence of values.
        """
        return self.actions.values(action)

    def listed(self) -> FactoredMDP:
        """The same model with a list of its joint actions, by name; itself if it has one already.

        A SizeError if they are too many. Cost: joint actions times the conditionals.
        """
        from fsmdp.reductions.actions import list_actions

        return list_actions(self)

    def action_index(self, action: Any) -> int:
        """Position of an action given by name or position."""
        return self.actions.position(action)

    def idle_action(self) -> str:
        """The action that does nothing: by its name, or else the one that changes fewest cases."""
        named = self.actions.idle()
        if named is not None:
            return named
        changes = np.zeros(len(self.actions), dtype=np.int64)
        exceptions = [mechanism.cases.exceptions for mechanism in self.dynamics.mechanisms]
        exceptions += [means.exceptions for means in self.reward_means]
        for listed in exceptions:
            changes[list(listed)] += 1
        return self.actions[int(changes.argmin())]

    @property
    def largest_size_of_return(self) -> float:
        """No episode returns more than this in size: the largest rewards, at every step."""
        largest = sum(
            max(float(np.abs(table.values).max()) for table in means) for means in self.reward_means
        )
        return largest * sum_of_discounts(self.horizon, self.discount)

    @property
    def span_of_return(self) -> float:
        """No two expected returns differ by more: the span of each reward term, at every step.

        Unlike the size of a return, it does not change when a constant is added to a term; 0 if
        no reward depends on anything.
        """
        span = sum(
            max(float(table.values.max()) for table in means)
            - min(float(table.values.min()) for table in means)
            for means in self.reward_means
        )
        return span * sum_of_discounts(self.horizon, self.discount)

    def check_state(self, state: State) -> tuple[int, ...]:
        """The state as a tuple of integers, or a ModelError saying what is wrong with it."""
        return check_state(state, self.variables)

    def is_terminal(self, state: State) -> bool:
        """Whether the episode is over in a state."""
        at = np.array([self.check_state(state)], dtype=np.int64)
        return bool(self.conditions.is_terminal(at)[0])

    def allows(self, state: State, action: Any) -> bool:
        """Whether an action is allowed in a state; none is in a terminal one."""
        checked, choice = self.check_state(state), self.actions.read(action)
        return not self.is_terminal(checked) and self.conditions.allows(checked, choice)

    def allowed_actions(self, state: State) -> tuple[str, ...] | dict[str, tuple[int, ...]]:
        """The actions that are allowed in a state, by name; none in a terminal one.

        Where actions are made of variables, the values of each variable that occur in some allowed
        joint action.
        """
        checked = self.check_state(state)
        over = self.is_terminal(checked)
        if self.actions.variables:
            if over:
                return {variable.name: () for variable in self.actions.variables}
            from fsmdp.policies.joint import AllowedValues

            found = AllowedValues(self.conditions)(np.array(checked, dtype=np.int64))
            names = (variable.name for variable in self.actions.variables)
            return {
                name: tuple(np.flatnonzero(fine).tolist())
                for name, fine in zip(names, found, strict=True)
            }
        if over:
            return ()
        mask = self.conditions.mask(np.array([checked], dtype=np.int64))[0]
        return tuple(name for name, fine in zip(self.actions, mask.tolist(), strict=True) if fine)

    def mean_reward(self, state: State, action: Any) -> float:
        """Expected reward of an action in a state."""
        state = self.check_state(state)
        inputs = (*state, *self.actions.values(action))
        case = 0 if self.actions.variables else self.actions.position(action)
        return math.fsum(means.at(case).value(inputs) for means in self.reward_means)

    def initial_distributions(self) -> tuple[Floats, ...]:
        """Distribution of each variable at the start; a fixed value is a distribution too."""
        return tuple(
            _certain(start, size) if isinstance(start, int) else start
            for size, start in zip(self.sizes, self.initial, strict=True)
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw the network of variables; see `fsmdp.plot.model`."""
        from fsmdp.report.plot import model

        return model(self, ax)

    def _repr_html_(self) -> str:
        names = [variable.name for variable in self.variables]
        return facts_table(
            "FactoredMDP",
            (
                ("variables", f"{len(names)}: {', '.join(names)}"),
                ("states", count_of_states(self.log10_states)),
                ("actions", self._actions_text()),
                ("rewards", f"{len(self.rewards)}: {', '.join(one.name for one in self.rewards)}"),
                ("ends", show_end(self.horizon, self.discount) + self._conditions_text()),
            ),
        )

    def _actions_text(self) -> str:
        if self.actions.variables:
            return self.actions.text
        return f"{len(self.actions)}: {', '.join(self.actions)}"

    def __repr__(self) -> str:
        many = self.log10_states >= 7
        states = f"10^{self.log10_states:.1f} states" if many else plural(self.n_states, "state")
        return (
            f"FactoredMDP({plural(len(self.variables), 'variable')}, {states}, "
            f"{self.actions.text}, {plural(len(self.rewards), 'reward term')}, "
            f"{show_end(self.horizon, self.discount)}{self._conditions_text()})"
        )

    def _conditions_text(self) -> str:
        """Whether actions are allowed in some states only, and whether episodes end early."""
        found = f", {plural(len(self.allowed), 'condition')} on actions" if self.allowed else ""
        return found + (", terminal states" if self.terminal else "")


def backup_rounding(model: FactoredMDP, summed: int) -> float:
    """More than rounding can change one backup of values: R(s, a) + discount * E[V(s') | s, a].

    A backup multiplies rows of kernels, and adds up rewards and at most `summed` products beside
    the values of what is drawn. Each operation is off by less than EPSILON times the largest
    return.
    """
    terms = sum(model.dynamics.drawn_sizes) + len(model.reward_means) + summed + 8
    return float(8 * EPSILON * terms * model.largest_size_of_return)


def check_model(model: object, where: str) -> FactoredMDP:
    """Refuse anything that is not a FactoredMDP."""
    if isinstance(model, FactoredMDP):
        return model
    raise ModelError(
        f"{where}: expected a FactoredMDP, found {type(model).__name__} {show(model)}; build one, "
        "load one or take one of fsmdp.domains."
    )


def _certain(value: int, size: int) -> Floats:
    distribution = np.zeros(size)
    distribution[value] = 1.0
    return distribution


def _resolve_initial(
    initial: Mapping[str, int | str | ArrayLike] | Sequence[int | str] | None,
    variables: Sequence[Variable],
) -> tuple[Start, ...]:
    starts: list[Start] = [0] * len(variables)
    if initial is None:
        return tuple(starts)
    if not isinstance(initial, Mapping):
        remedy = "or give a dictionary by name"
        values = as_items(initial, "initial", f"{len(variables)} values, one per variable", remedy)
        if len(values) != len(variables):
            raise ModelError(
                f"initial: expected {len(variables)} values, one per variable, found "
                f"{len(values)}; {remedy}."
            )
        initial = {v.name: value for v, value in zip(variables, values, strict=True)}
    names = as_names(list(initial), "initial")
    positions = find_positions(names, positions_by_name(variables), "initial")
    for position, value in zip(positions, initial.values(), strict=True):
        starts[position] = _resolve_start(value, variables[position])
    return tuple(starts)


def _resolve_start(value: int | str | ArrayLike, variable: Variable) -> Start:
    where = f"initial of {show(variable.name)}"
    if is_whole(value) or isinstance(value, str):
        found = variable.find(value)
        if found is None:
            raise ModelError(
                f"{where}: value {show(value)} is out of range, expected {variable.expected}."
            )
        return found
    distribution = read_only_array(value, where)
    if distribution.shape != (variable.size,):
        raise ModelError(
            f"{where}: expected a value from 0 to {variable.size - 1} or {variable.size} "
            f"probabilities, found {show(value)}; give one of the two."
        )
    with np.errstate(over="ignore"):  # an endless sum is refused below like any other
        total = float(distribution.sum())
    if distribution.min() < 0 or abs(total - 1) > ROW_TOLERANCE:
        raise ModelError(
            f"{where}: probabilities run from {distribution.min():.6g} and sum to {total:.10g}, "
            "expected none below 0 and a sum of 1; normalise them"
            f"{float32_hint(distribution, abs(total - 1))}."
        )
    return read_only(normalised(distribution))
