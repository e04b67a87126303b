"""What a factored MDP cannot express, or would be too large, is refused with the reason."""

import sys

import pytest
from tests.io.rddl_texts import KEEP, load_problem, write_problem

import fsmdp
from fsmdp.io.rddl.parsing import _parser
from fsmdp.io.rddl.sources import repository

REFUSED = {
    "continuous": (
        {"pvariables": "x : { state-fluent, real, default = 0.0 };", "cpfs": KEEP + "x' = x;"},
        "continuous",
    ),
    "integer action": (
        {"pvariables": "n : { action-fluent, int, default = 0 };", "cpfs": KEEP},
        "from -inf to inf",
    ),
    "observed": (
        {
            "pvariables": "seen : { observ-fluent, bool };",
            "cpfs": KEEP + "seen = Bernoulli(0.5);",
        },
        "partly observed",
    ),
    "endless draw": (
        {
            "pvariables": "n : { state-fluent, int, default = 0 };",
            "cpfs": KEEP + "n' = Poisson(2.0);",
        },
        "Poisson",
    ),
    "no action": (
        {
            "pvariables": "",
            "cpfs": KEEP,
            "sections": "action-preconditions { false; };",
        },
        "no joint action",
    ),
    "endless draw that is compared for equality": (
        {
            "pvariables": "",
            "cpfs": "on'(?t) = (Poisson(2.0) == 3);",
        },
        "== is applied to a draw",
    ),
    "random value in the reward": (
        {
            "pvariables": "luck : { interm-fluent, bool };",
            "cpfs": KEEP + "luck = Bernoulli(0.5);",
            "reward": "luck",
        },
        "drawn at random in the same step",
    ),
    "circle": (
        {
            "pvariables": "a : { interm-fluent, bool }; b : { interm-fluent, bool };",
            "cpfs": "a = b; b = a; on'(?t) = a;",
        },
        "in terms of itself",
    ),
    "circle of next values": (
        {
            "pvariables": "a : { state-fluent, bool, default = true };",
            "cpfs": "a' = exists_{?t : thing} on'(?t); on'(?t) = a';",
        },
        "in a cycle",
    ),
    "random reward": (
        {"pvariables": "", "cpfs": KEEP, "reward": "Bernoulli(0.5)"},
        "term 1 of the reward",
    ),
    "weights that do not sum to one": (
        {
            "types": "thing : object; height : {@low, @high};",
            "pvariables": "gauge : { state-fluent, height, default = @low };",
            "cpfs": KEEP + "gauge' = Discrete(height, @low : 0.2, @high : 0.2);",
        },
        "sum to 0.4",
    ),
    "unknown function": (
        {"pvariables": "", "cpfs": KEEP, "reward": "frobnicate[1]"},
        "frobnicate",
    ),
    "division by zero": (
        {"pvariables": "", "cpfs": KEEP, "reward": "1 / UNUSED", "constants": "UNUSED = 0.0;"},
        "divides by zero",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_expressed_is_refused_with_the_reason(case, tmp_path):
    parts, reason = REFUSED[case]
    with pytest.raises(fsmdp.rddl.UnsupportedError, match=reason) as caught:
        load_problem(tmp_path, **parts)
    assert str(caught.value).startswith("domain:instance: ")


def test_integers_without_bounds_are_refused(tmp_path):
    with pytest.raises(fsmdp.rddl.TooLargeError, match="more than 64 values"):
        load_problem(
            tmp_path,
            pvariables="n : { state-fluent, int, default = 1 };",
            cpfs=KEEP + "n' = n + Bernoulli(0.5);",
            horizon=100,
        )


def test_too_many_joint_actions_are_refused_before_they_are_listed(tmp_path):
    things = ", ".join(f"t{i}" for i in range(200))
    parts = {"cpfs": KEEP, "pvariables": "", "objects": f"thing : {{{things}}};", "limit": ""}
    with pytest.raises(fsmdp.rddl.TooLargeError, match=r"2\^200 joint actions"):
        load_problem(tmp_path, actions="listed", **parts)


def test_what_cannot_be_split_is_refused_before_a_table_is_made(tmp_path):
    things = ", ".join(f"t{i}" for i in range(1, 40))
    weights = " + ".join(f"{2**i / 2**40:.15f} * on(t{i})" for i in range(1, 40))
    with pytest.raises(fsmdp.rddl.TooLargeError, match=r"a table over 2\d fluents"):
        load_problem(
            tmp_path,
            cpfs=f"on'(?t) = Bernoulli({weights});",
            pvariables="",
            objects=f"thing : {{{things}}};",
        )


def test_text_that_is_not_rddl_is_refused_in_one_line(tmp_path):
    files = write_problem(tmp_path, cpfs="on'(?t) = = on(?t);", pvariables="")
    with pytest.raises(fsmdp.ModelError, match="line 6, column 22") as caught:
        fsmdp.rddl.load(*files, cache=False)
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_unknown_names_are_refused_with_names_like_them():
    with pytest.raises(fsmdp.ModelError, match="'SysAdmin_MDP_ippc2011'"):
        fsmdp.rddl.load("SysAdmin_ippc2011", 1)
    with pytest.raises(fsmdp.ModelError, match="no instance 11"):
        fsmdp.rddl.load("SysAdmin_MDP_ippc2011", 11)
    with pytest.raises(fsmdp.ModelError, match="cannot read"):
        fsmdp.rddl.load("nowhere.rddl", "nothing.rddl")


def test_limits_must_be_whole_numbers():
    with pytest.raises(fsmdp.ModelError, match="most_actions"):
        fsmdp.rddl.load("SysAdmin_MDP_ippc2011", 1, most_actions=0)


def test_without_the_packages_the_error_names_the_extra(monkeypatch, tmp_path):
    files = write_problem(tmp_path, cpfs=KEEP, pvariables="")
    monkeypatch.setitem(sys.modules, "pyRDDLGym.core.parser.parser", None)
    _parser.cache_clear()
    with pytest.raises(fsmdp.ModelError, match=r'pip install "fsmdp\[rddl\]"'):
        fsmdp.rddl.load(*files, cache=False)
    _parser.cache_clear()
    monkeypatch.setattr("fsmdp.io.rddl.sources.find_spec", lambda name: None)
    repository.cache_clear()
    with pytest.raises(fsmdp.ModelError, match=r'pip install "fsmdp\[rddl\]"'):
        fsmdp.rddl.load("SysAdmin_MDP_ippc2011", 1)
    repository.cache_clear()


@pytest.mark.parametrize("where", ["pvariables", "cpfs", "reward"])
def test_names_of_any_length_are_quoted_in_short(where, tmp_path):
    name = "x" * 20_000
    texts = {
        "pvariables": {
            "pvariables": f"{name} : {{ state-fluent, real, default = 0.0 }};",
            "cpfs": KEEP,
        },
        "cpfs": {"pvariables": "", "cpfs": KEEP + f"{name}' = {name};"},
        "reward": {"pvariables": "", "cpfs": KEEP, "reward": name},
    }[where]
    with pytest.raises(fsmdp.FsmdpError) as raised:
        load_problem(tmp_path, **texts)
    assert len(str(raised.value)) < 1000
