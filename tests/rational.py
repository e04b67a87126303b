"""Small models in exact arithmetic: every number of a model taken as the rational that it is.

Nothing here shares code with what it checks. A row of probabilities means its entries divided by
their sum; all that follows is enumeration with `fractions.Fraction`.
"""

from fractions import Fraction
from itertools import product

from tests.conditioned_models import is_allowed, is_terminal
from tests.oracle import all_states, find_case


class RationalModel:
    """Transition probabilities and mean rewards of every state and action."""

    def __init__(self, model):
        self.model = model
        self.states = all_states(model)
        self.discount = Fraction(model.discount)
        self.transitions = {}  # (state, action): {next state: probability}
        self.rewards = {}  # (state, action)
        self.choices = {  # actions that are allowed; none where the episode is over
            state: []
            if is_terminal(model, state)
            else [a for a in range(len(model.actions)) if is_allowed(model, state, a)]
            for state in self.states
        }
        for state, action in product(self.states, range(len(model.actions))):
            self.transitions[state, action] = _next_states(model, state, action)
            self.rewards[state, action] = _reward(model, state, action)

    def initial(self):
        """Probability of each state at the start."""
        found = {}
        for state in self.states:
            probability = Fraction(1)
            for value, start in zip(state, self.model.initial, strict=True):
                if isinstance(start, int):
                    probability *= int(value == start)
                else:
                    row = [Fraction(float(p)) for p in start]
                    probability *= row[value] / sum(row)
            found[state] = probability
        return found

    def backup(self, values, state, action):
        """R(s, a) + discount * E[V(s')]."""
        following = sum(p * values[after] for after, p in self.transitions[state, action].items())
        return self.rewards[state, action] + self.discount * following

    def optimal_values(self):
        """V* of every step, the first step first; the horizon is finite."""
        values = dict.fromkeys(self.states, Fraction(0))
        found = []
        for _ in range(self.model.horizon):
            values = {
                state: max(
                    (self.backup(values, state, a) for a in self.choices[state]),
                    default=Fraction(0),
                )
                for state in self.states
            }
            found.insert(0, values)
        return found

    def stationary_values(self):
        """V* without a horizon, by policy iteration."""
        policy = {state: next(iter(self.choices[state]), None) for state in self.states}
        while True:
            values = self._evaluated(policy)
            better = {
                state: max(
                    self.choices[state],
                    key=lambda a: (self.backup(values, state, a), a == policy[state]),
                    default=None,
                )
                for state in self.states
            }
            if better == policy:
                return values
            policy = better

    def _evaluated(self, policy):
        """V of a stationary policy: (1 - discount * P) V = R, by Gauss-Jordan elimination."""
        rows = []
        for state in self.states:
            over = policy[state] is None
            after = {} if over else self.transitions[state, policy[state]]
            row = [
                Fraction(int(state == other)) - self.discount * after.get(other, 0)
                for other in self.states
            ]
            rows.append([*row, Fraction(0) if over else self.rewards[state, policy[state]]])
        for at in range(len(rows)):
            pivot = next(row for row in range(at, len(rows)) if rows[row][at])
            rows[at], rows[pivot] = rows[pivot], rows[at]
            rows[at] = [number / rows[at][at] for number in rows[at]]
            for other in range(len(rows)):
                factor = rows[other][at]
                if other != at and factor:
                    pairs = zip(rows[other], rows[at], strict=True)
                    rows[other] = [number - factor * above for number, above in pairs]
        return {state: row[-1] for state, row in zip(self.states, rows, strict=True)}

    def start_value(self):
        """What the best policy earns."""
        stationary = self.model.horizon is None
        first = self.stationary_values() if stationary else self.optimal_values()[0]
        return sum(p * first[state] for state, p in self.initial().items())

    def values_of(self, basis, weights):
        """V of one step's weights at every state."""
        found = {}
        for state in self.states:
            total = Fraction(0)
            for weight, table in zip(weights, basis, strict=True):
                entry = table.values[tuple(state[p] for p in table.scope)]
                total += Fraction(float(weight)) * Fraction(float(entry))
            found[state] = total
        return found

    def largest_violation(self, basis, weights):
        """max over (l, s, a) of R + discount * backup - V_l; rows of weights are steps."""
        steps = [self.values_of(basis, row) for row in weights]
        nothing = dict.fromkeys(self.states, Fraction(0))
        following = steps if self.model.horizon is None else [*steps[1:], nothing]
        return max(
            (self.backup(after, state, action) if self.choices[state] else 0) - values[state]
            for values, after in zip(steps, following, strict=True)
            for state in self.states
            for action in self.choices[state] or [None]
        )


def _next_states(model, state, action):
    sizes = [v.size for v in (*model.variables, *model.latents)]
    current = {v.name: state[i] for i, v in enumerate(model.variables)}
    found = {}
    for drawn in product(*map(range, sizes)):
        new = {v.name: drawn[i] for i, v in enumerate((*model.variables, *model.latents))}
        probability = Fraction(1)
        for conditional in model.conditionals:
            case = find_case(conditional.cases, model.actions[action])
            at = (*(current[n] for n in case.parents), *(new[n] for n in case.drawn))
            row = case.table[at]
            total = sum(Fraction(float(p)) for p in row.ravel())
            entry = row[tuple(new[name] for name in conditional.children)]
            probability *= Fraction(float(entry)) / total
            if not probability:
                break
        if probability:
            after = drawn[: len(model.variables)]
            found[after] = found.get(after, 0) + probability
    return found


def _reward(model, state, action):
    current = {v.name: state[i] for i, v in enumerate(model.variables)}
    total = Fraction(0)
    for reward in model.rewards:
        case = find_case(reward.cases, model.actions[action])
        total += Fraction(float(case.table[tuple(current[name] for name in case.parents)]))
    return total
