"""Trees that predict a variable, against what can be counted by hand and by chance."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

import fsmdp
from fsmdp.discovery.parents import A_BIT, Tree, counted, log_bet, log_fit
from fsmdp.discovery.transitions import Transitions
from fsmdp.model.actions import ListedActions


def rows_of(n, law, seed=0, sizes=(2, 2, 3), actions=3, at_random=True):
    """Rows whose next value of the first variable is drawn by `law(state, action)`."""
    rng = np.random.default_rng(seed)
    inputs = rng.integers(sizes, size=(n, len(sizes)))
    taken = rng.integers(actions, size=n)
    chances = np.array([law(state, action) for state, action in zip(inputs, taken, strict=True)])
    values = (rng.random(n) < chances).astype(np.int64)
    variables = tuple(fsmdp.Variable(f"x{i}", size) for i, size in enumerate(sizes))
    names = ListedActions(f"a{i}" for i in range(actions))
    return Transitions(
        variables, ListedActions(names), inputs, taken, values[:, np.newaxis], at_random
    )


def grown(data, **options):
    inputs = options.pop("inputs", range(len(data.sizes)))
    return Tree(data, data.outcomes[:, 0], 2, inputs, **{"most": 5} | options)


def locked(state, action):
    """The first matters under one action while the second holds; else a coin, if it is not 0."""
    if action == 1:
        return 0.9 if state[0] and state[1] else 0.1
    return 0.5


def test_a_tree_splits_where_it_pays_and_nowhere_else():
    tree = grown(rows_of(4000, locked))
    assert (tree.parents, tree.apart) == ([0, 1], [1])
    assert sum(node.split is None for node in tree.nodes) == 4
    assert not tree.full
    for node in tree.nodes:
        if node.split is not None:
            together = np.sort(np.concatenate([child.rows for child in node.children]))
            np.testing.assert_array_equal(together, np.sort(node.rows))


def test_its_prediction_is_that_of_its_leaves_less_a_prior_that_sums_to_one():
    data = rows_of(3000, locked)
    tree = grown(data)
    leaf = np.zeros(len(data), dtype=np.int64)
    leaves = [node for node in tree.nodes if node.split is None]
    for number, node in enumerate(leaves):
        leaf[node.rows] = number
    bet = log_bet(counted(leaf, data.outcomes[:, 0], 2))
    named = math.log(2) * len(tree.nodes) + (len(tree.nodes) - len(leaves)) * math.log(3 + 3)
    assert tree.prediction == pytest.approx(bet - named)


def test_the_first_split_is_the_best_of_all():
    data = rows_of(900, lambda state, action: 0.2 + 0.5 * (state[2] == 1) + 0.2 * state[0], seed=3)
    values, tree = data.outcomes[:, 0], grown(data)

    def gain(contexts, sides):
        alone = log_bet(counted(np.zeros(len(data), dtype=np.int64), values, 2))
        named = tree.split_price + (sides - 1) * A_BIT
        return log_bet(counted(contexts, values, 2)) - alone - named

    gains = [gain(data.inputs[:, i], data.sizes[i]) for i in range(3)]
    gains += [gain((data.taken == action).astype(np.int64), 2) for action in range(3)]
    assert tree.nodes[0].split == int(np.argmax(gains)) == 2
    assert max(gains) > 0


def test_the_evidence_for_a_parent_is_the_best_that_its_nodes_give():
    """By hand, over all sets of nodes that split on it and have no rows in common."""
    data = rows_of(4000, lambda s, a: 0.7 if s[0] and a == 1 else 0.6 if s[0] and s[1] else 0.3, 5)
    tree, values = grown(data), data.outcomes[:, 0]
    contexts = data.inputs[:, 1] * 3 + data.inputs[:, 2]
    contexts = contexts * 3 + data.taken

    def below(node):
        return [node, *itertools.chain(*map(below, node.children))]

    def alone(node):
        under = below(node)
        leaves = [one for one in under if one.split is None]
        bet = sum(one.bet for one in leaves)
        fit = log_fit(counted(contexts[node.rows], values[node.rows], 2))
        named = len(under) * A_BIT + (len(under) - len(leaves)) * math.log(6)
        return bet - fit - (named + node.path + A_BIT)

    nodes = [node for node in tree.nodes if node.split == 0]
    best = 0.0
    for count in range(1, len(nodes) + 1):
        for some in itertools.combinations(nodes, count):
            if len(np.unique(np.concatenate([n.rows for n in some]))) == sum(
                len(n.rows) for n in some
            ):
                best = max(best, sum(map(alone, some)))
    found, price = tree.strength(0, contexts)
    assert best > 10
    assert found - price == pytest.approx(best)


def test_inputs_are_no_more_than_asked_for_and_it_says_so():
    tree = grown(rows_of(4000, locked), most=1)
    assert len(tree.parents) == 1
    assert tree.full


def test_an_exclusive_or_needs_a_look_ahead():
    data = rows_of(2000, lambda state, action: 0.1 + 0.8 * (state[0] ^ state[1]), seed=1)
    assert grown(data).parents == []
    assert grown(data, lookahead=2).parents == [0, 1]


def test_it_is_certain_only_where_others_tell_the_value():
    data = rows_of(500, lambda state, action: float(state[2] == 1))
    assert grown(data).certain
    assert not grown(data, inputs=[0, 1]).certain
    assert not grown(rows_of(500, locked)).certain
    assert not grown(rows_of(3, lambda state, action: float(state[2] == 1))).certain


@pytest.mark.parametrize("alpha", [0.05, 0.5])
def test_evidence_for_what_does_not_matter_is_rare_whatever_tree_was_grown(alpha):
    """The first input decides, the others follow from it: proxies that trees like to split on."""
    runs, exceeded, split = 300, 0, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        n = 120
        first = rng.integers(2, size=n)
        noisy = [np.where(rng.random(n) < 0.15, 1 - first, first) for _ in range(2)]
        inputs = np.column_stack([first, *noisy])
        values = (rng.random(n) < np.where(first, 0.8, 0.2)).astype(np.int64)
        variables = tuple(fsmdp.Variable(f"x{i}", 2) for i in range(3))
        data = Transitions(
            variables,
            ListedActions("a"),
            inputs,
            np.zeros(n, np.int64),
            values[:, np.newaxis],
            True,
        )
        tree = grown(data, inputs=[1, 2])
        split += bool(tree.parents)
        margins = [np.subtract(*tree.strength(one, first)) for one in tree.parents]
        exceeded += max(margins, default=-math.inf) >= math.log(1 / alpha)
    assert split > runs / 2, "trees must have been tempted"
    assert exceeded <= binom.ppf(0.999, runs, alpha)
