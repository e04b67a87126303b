"""Influence: opinions that spread over a graph, pushed by campaigns; V* is linear at any size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from fsmdp.domains.registry import (
    Domain,
    check_probability,
    check_whole,
    realizable_start_value,
    register,
)
from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_items
from fsmdp.model.basis import Basis
from fsmdp.model.cases import ANY, Case
from fsmdp.model.conditionals import Conditional
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.rewards import Reward
from fsmdp.model.structure import check_horizon
from fsmdp.model.tables import Floats, Integers
from fsmdp.model.variables import Variable

if TYPE_CHECKING:
    from fsmdp.policies.resolve import PolicyFunction

RING_WITH_CHORDS = (-1, 2)
UNPROMPTED = 0.1  # chance that a listener is convinced when no campaign aims at it
LIFT = 0.8  # what the strongest campaign adds to that chance
PRICE = 0.35
LARGEST_NETWORK = 100_000
LARGEST_DEGREE = 12
MOST_EFFECTS = 2**22  # campaigns times nodes
NEGLIGIBLE = 1e-18


@dataclass(frozen=True, slots=True, eq=False)
class Influence:
    """Parameters of an influence model, and its optimal value function in closed form.

    State: an opinion x_i in {0, 1} for each node; all start at 0. Each step draws, once for all
    nodes, a latent `coin` (1 with probability `listening`) and a latent `choice` (u with
    probability q_u, proportional to 1 / (u + 1)). With coin 1 node i becomes 1 with probability
    b[a, i]; with coin 0 every node copies its neighbour number u. So next opinions are correlated
    given (state, action), and

        E[x_i' | x, a] = (1 - listening) sum_u q_u x_{n_u(i)} + listening * b[a, i].

    Actions: `none`, `campaign-1`, ..., `campaign-K`. The nodes are cut into K blocks in order;
    campaign k lifts b of block k from 0.1 by 0.8 k / K and costs 0.35 (k / K)^2 / K: the stronger,
    the dearer. Rewards: r_i x_i for each node, with r_i drawn from [0.8, 1.2] by `seed` and then
    divided by their sum, and minus the campaign's cost.
    `neighbours` lists each node's neighbours, equally many for all; by default i - 1 and i + 2
    around a ring.

    The action's effect is additive, so V*_l(x) = c_l + sum_i w_l,i x_i, and the best campaign
    depends on the step only: strong ones pay early on, `none` is best at the last step.
    """

    nodes: int = 8
    campaigns: int = 3
    horizon: int | None = 10
    listening: float = 0.2
    discount: float = 1.0
    seed: int = 0
    neighbours: Sequence[Sequence[int]] | None = None
    graph: Integers = field(init=False, repr=False)  # (nodes, degree)
    choice: Floats = field(init=False, repr=False)  # (degree,)
    rates: Floats = field(init=False, repr=False)  # (1 + campaigns, nodes)
    costs: Floats = field(init=False, repr=False)  # (1 + campaigns,)
    worths: Floats = field(init=False, repr=False)  # (nodes,)

    def __post_init__(self) -> None:
        check_whole("influence", "nodes", self.nodes, 1, LARGEST_NETWORK)
        check_whole("influence", "campaigns", self.campaigns, 0, LARGEST_NETWORK)
        check_whole("influence", "seed", self.seed, 0)
        check_probability("influence", "listening", self.listening)
        check_horizon(self.horizon, self.discount)
        if self.campaigns > self.nodes:
            raise ModelError(
                f"influence: {self.campaigns} campaigns for {self.nodes} nodes, expected at most "
                "one campaign per node since each has its own block; use fewer campaigns."
            )
        if self.nodes * self.campaigns > MOST_EFFECTS:
            raise ModelError(
                f"influence: {self.campaigns} campaigns for {self.nodes} nodes make "
                f"{self.nodes * self.campaigns} effects, expected at most {MOST_EFFECTS}; use "
                "fewer of either."
            )
        graph = _checked_graph(self.nodes, self.neighbours)
        choice = 1 / np.arange(1.0, graph.shape[1] + 1)
        strengths = np.arange(self.campaigns + 1) / max(1, self.campaigns)
        blocks = 1 + (np.arange(1, self.nodes + 1) * self.campaigns - 1) // self.nodes
        reached = np.arange(self.campaigns + 1)[:, None] == blocks
        worths = np.random.default_rng(self.seed).uniform(0.8, 1.2, self.nodes)
        derived = {
            "graph": graph,
            "choice": choice / choice.sum(),
            "rates": UNPROMPTED + LIFT * strengths[:, None] * reached,
            "costs": PRICE * strengths**2 / max(1, self.campaigns),
            "worths": worths / worths.sum(),
        }
        for name, array in derived.items():
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @property
    def actions(self) -> tuple[str, ...]:
        """`none`, then the campaigns."""
        return ("none", *(f"campaign-{number}" for number in range(1, self.campaigns + 1)))

    def model(self) -> FactoredMDP:
        """The factored MDP."""
        names = [f"node-{node}" for node in range(self.nodes)]
        return FactoredMDP(
            variables=[Variable(name, 2) for name in names],
            actions=self.actions,
            latents=[Variable("coin", 2), Variable("choice", len(self.choice))],
            conditionals=[
                Conditional("coin", [Case(ANY, [], [1 - self.listening, self.listening])]),
                Conditional("choice", [Case(ANY, [], self.choice)]),
                *(self._opinion(node, names) for node in range(self.nodes)),
            ],
            rewards=[
                *(
                    Reward(f"opinion-{node}", [Case(ANY, [name], [0, worth])], 0, worth)
                    for node, (name, worth) in enumerate(
                        zip(names, self.worths.tolist(), strict=True)
                    )
                ),
                Reward(
                    "campaign",
                    [
                        Case([action], [], 0 - cost)
                        for action, cost in zip(self.actions, self.costs, strict=True)
                    ],
                    low=-float(self.costs.max()),
                    high=0.0,
                ),
            ],
            horizon=self.horizon,
            discount=self.discount,
        )

    def basis(self, model: FactoredMDP) -> Basis:
        """The basis in which V* is linear: singles."""
        return Basis.singles(model)

    def optimal_weights(self) -> Floats:
        """Weights of V* in the basis of singles, shape (horizon + 1, 1 + nodes), last row 0.

        w_l = r + discount (1 - listening) M^T w_{l+1},  M[i, n_u(i)] = sum of the q_u
        c_l = discount c_{l+1} + max_a [discount * listening * b[a] . w_{l+1} - cost_a]
        One row, the fixed point, when the horizon is infinite.
        Cost: horizon * nodes * (degree + campaigns).
        """
        if self.horizon is None:
            return self._stationary_weights()[None, :]
        weights = np.zeros((self.horizon + 1, 1 + self.nodes))
        for row in reversed(range(self.horizon)):
            later = weights[row + 1]
            weights[row, 0] = self.discount * later[0] + self._gains(later[1:]).max()
            weights[row, 1:] = self.worths + self._copied(later[1:])
        return weights

    def optimal_actions(self) -> tuple[str, ...]:
        """The best action of each step, whatever the state; a single one if infinite."""
        weights = self.optimal_weights()
        later = weights if self.horizon is None else weights[1:]
        # Lowest index wins ties, as in enumeration.
        return tuple(self.actions[int(self._gains(row[1:]).argmax())] for row in later)

    def optimal_policy(self) -> PolicyFunction:
        """The policy that takes the best action of each step."""
        best = self.optimal_actions()
        return lambda _, step: best[min(step, len(best)) - 1]

    def _gains(self, later: Floats) -> Floats:
        """What each action adds now and later, beyond what copying brings."""
        return np.asarray(self.discount * self.listening * self.rates @ later - self.costs)

    def _copied(self, later: Floats) -> Floats:
        """discount (1 - listening) M^T later, without writing M out."""
        sent = (later[:, None] * self.choice).ravel()
        spread = np.bincount(self.graph.ravel(), weights=sent, minlength=self.nodes)
        return np.asarray(self.discount * (1 - self.listening) * spread)

    def _stationary_weights(self) -> Floats:
        weights, shrinkage = self.worths, self.discount * (1 - self.listening)
        if shrinkage > 0:
            # M^T keeps the sum of weights, so each round shrinks the error by exactly this much.
            for _ in range(math.ceil(math.log(NEGLIGIBLE) / math.log(shrinkage))):
                weights = self.worths + self._copied(weights)
        constant = self._gains(weights).max() / (1 - self.discount)
        return np.concatenate([[constant], weights])

    def _opinion(self, node: int, names: Sequence[str]) -> Conditional:
        """Conditional of one node; actions with the same b[a, node] are one group."""
        parents = list(dict.fromkeys(self.graph[node].tolist()))
        # copied[values of the parents, u]: the opinion of neighbour number u
        copied = np.indices((2,) * len(parents))[[parents.index(n) for n in self.graph[node]]]
        copied = np.moveaxis(copied, 0, -1)
        groups: dict[float, list[str]] = {}
        for action, rate in zip(self.actions, self.rates[:, node].tolist(), strict=True):
            groups.setdefault(rate, []).append(action)
        return Conditional(
            names[node],
            [
                Case(
                    actions,
                    parents=[names[parent] for parent in parents],
                    drawn=["coin", "choice"],
                    table=_next_opinion(copied, rate),
                )
                for rate, actions in groups.items()
            ],
        )


def influence(
    nodes: int = 8,
    campaigns: int = 3,
    horizon: int | None = 10,
    listening: float = 0.2,
    discount: float = 1.0,
    seed: int = 0,
    neighbours: Sequence[Sequence[int]] | None = None,
) -> FactoredMDP:
    """Opinion dynamics on a graph with campaigns; see Influence, which also knows V*."""
    return Influence(nodes, campaigns, horizon, listening, discount, seed, neighbours).model()


def _next_opinion(copied: Integers, rate: float) -> Floats:
    """P(next | parents, coin, choice): axes parents, coin, choice, next value."""
    convinced = np.stack([copied, np.full(copied.shape, rate)], axis=-2)
    return np.stack([1 - convinced, convinced], axis=-1)


def _checked_graph(nodes: int, neighbours: Sequence[Sequence[int]] | None) -> Integers:
    if neighbours is None:
        return (np.arange(nodes)[:, None] + RING_WITH_CHORDS) % nodes
    remedy = "give a list of node numbers for each node"
    rows = as_items(neighbours, "influence, neighbours", "a list of lists", remedy)
    if len(rows) != nodes:
        raise ModelError(
            f"influence: neighbours of {len(rows)} nodes, expected one list for each of the "
            f"{nodes} nodes; add or remove lists."
        )
    graph = [
        as_items(row, f"influence, neighbours of node {node}", "a list of nodes", remedy)
        for node, row in enumerate(rows)
    ]
    degree = len(graph[0])
    if not 1 <= degree <= LARGEST_DEGREE:
        raise ModelError(
            f"influence: node 0 has {degree} neighbours, expected 1 to {LARGEST_DEGREE}; its table "
            f"would have 2^{degree} rows for each value of coin and choice, thin the graph out."
        )
    for node, listed in enumerate(graph):
        if len(listed) != degree:
            raise ModelError(
                f"influence: node {node} has {len(listed)} neighbours, expected {degree} as node 0 "
                "has, since one index is drawn for all; name a neighbour twice or itself to fill."
            )
        for other in listed:
            check_whole("influence", f"a neighbour of node {node}", other, 0, nodes - 1)
    return np.array(graph, dtype=np.int64)


register(
    Domain(
        "influence",
        influence,
        "opinions on a graph pushed by campaigns; V* is linear in singles at any size",
        positional=1,
        start_value=realizable_start_value(Influence),
        environment="fsmdp/Influence-v0",
    )
)
