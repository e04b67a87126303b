import numpy as np
import pytest

from fsmdp.elimination import Network
from fsmdp.errors import ModelError
from fsmdp.model.cases import Cases


def small():
    return Network((2, 3), 3, (Cases(((0, 1), (1,)), {2: 1}), Cases(((),))))


def test_tables_of_all_groups_lie_one_after_another():
    network = small()
    assert network.offsets == ((0, 6), (9,))
    assert network.n_entries == 10


def test_value_adds_the_entries_of_the_actions_groups():
    network = small()
    entries = np.arange(10.0)
    assert network.value(entries, [1, 2], action=0) == 5 + 9
    assert network.value(entries, [1, 2], action=2) == 8 + 9
    assert network.value(entries, [[0, 0], [1, 1]], action=1).tolist() == [0 + 9, 4 + 9]


def test_actions_with_the_same_groups_are_one_class():
    network = small()
    assert network.n_classes == 2
    assert network.class_of_action.tolist() == [0, 0, 1]


@pytest.mark.parametrize("scope", [(1, 0), (0, 0), (0, 2), (-1,)])
def test_a_scope_that_is_not_sorted_positions_is_refused(scope):
    with pytest.raises(ModelError, match="factor 0, group 0: expected a scope of increasing"):
        Network((2, 2), 1, (Cases((scope,)),))


def test_exceptions_of_unknown_actions_or_groups_are_refused():
    with pytest.raises(ModelError, match="action 5 is put into group 1"):
        Network((2,), 2, (Cases(((0,), ()), {5: 1}),))
    with pytest.raises(ModelError, match="action 1 is put into group 2"):
        Network((2,), 2, (Cases(((0,), ()), {1: 2}),))


def test_entries_that_are_not_finite_are_refused():
    with pytest.raises(ModelError, match="entry 3 is -inf, expected a finite number"):
        small().checked([0, 0, 0, -np.inf, 0, 0, 0, 0, 0, 0])


def test_entries_of_the_wrong_length_are_refused():
    with pytest.raises(ModelError, match=r"expected shape \(10,\).*found \(9,\)"):
        small().value(np.zeros(9), [0, 0], 0)
