"""Files that are wrong: where, what was expected, and never a traceback or a long wait."""

import sys

import pytest
from tests.io.rddl_texts import KEEP, load_problem, write_problem

import fsmdp
from fsmdp.cli import entry
from fsmdp.io.rddl.loading import MOST_FRAMES

COLOUR = "thing : object; colour : {@red, @green};"

WRONG = {
    "unbound variable": ({"reward": "on(?d)"}, r"line \d+, column \d+: the reward: .*\?d is not"),
    "unknown type": ({"reward": "sum_{?z : zzz} [1]"}, r"\?z : zzz is of a type"),
    "unknown object": ({"reward": "on(@c9)"}, "@c9 is not an object"),
    "unknown fluent": ({"reward": "off"}, "off is not declared"),
    "too many arguments": (
        {"reward": "sum_{?t : thing} [on(?t, ?t)]"},
        "on has 2 arguments; expected 1",
    ),
    "an object of another type": (
        {"types": COLOUR, "reward": "on(@red)"},
        "argument 1 of on, @red, is an object of the type colour; expected an object of the type",
    ),
    "a number for a truth value": ({"cpfs": "on'(?t) = 1 + on(?t);"}, "is a number; expected a tr"),
    "a truth value of numbers": ({"reward": "3 ^ true"}, "3 is a number; expected a truth value"),
    "an object in a sum": ({"types": COLOUR, "reward": "1 + @red"}, "@red is an object of the ty"),
    "a type called number": (
        {"types": "thing : object; number : {@one};", "reward": "1 + @one"},
        "@one is an object of the type number; expected a number",
    ),
    "objects in order": ({"types": COLOUR, "reward": "@red < @green"}, "objects have no order"),
    "a variable bound twice": (
        {"cpfs": "on'(?t) = exists_{?t : thing} [on(?t)];"},
        r"domain.rddl, line 6, column \d+: the formula of on': \?t is bound twice",
    ),
    "parameters that repeat": (
        {
            "pvariables": "link(thing, thing) : { state-fluent, bool, default = false };",
            "cpfs": KEEP + "link'(?t, ?t) = true;",
        },
        "repeat one",
    ),
    "too few arguments of a function": ({"reward": "max[1]"}, "has 1 argument; expected 2"),
    "a switch with a case of another type": (
        {
            "types": COLOUR,
            "pvariables": "lamp : { state-fluent, colour, default = @red };",
            "cpfs": KEEP + "lamp' = switch (lamp) { case @red : @green, case @blue : @red };",
        },
        "a case for 'blue'",
    ),
    "a discrete without a case": (
        {
            "types": COLOUR,
            "pvariables": "lamp : { state-fluent, colour, default = @red };",
            "cpfs": KEEP + "lamp' = Discrete(colour, @red : 1.0);",
        },
        "no case for 'green'",
    ),
    "an unknown range": (
        {"pvariables": "x : { interm-fluent, zzz };", "cpfs": KEEP + "x = 1;"},
        "the range 'zzz'",
    ),
    "a type without objects": ({"types": "thing : object; none : {};"}, "none has no objects"),
    "a start of the wrong kind": ({"start": "on(t1) = 7;"}, "init-state: on is 7; expected true"),
    "a constant of the wrong kind": ({"constants": "UNUSED = t1;"}, "UNUSED"),
    "a number too large": ({"reward": "9" * 40}, "at most 2\\^53"),
    "a number without end": ({"reward": "9" * 5000}, "domain.rddl"),
    "a start of something unknown": ({"start": "off;"}, "<off> referenced in init-state"),
    "a strange character": ({"reward": "1 \u2192 2"}, r"domain.rddl, line 7, column \d+: '→' is"),
    "a binary zero": ({"reward": "\0"}, r"'\\x00' is not a character of RDDL"),
    "no horizon": ({"horizon": "5; } instance other { domain = little"}, "no horizon is given"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_with_its_place(case, tmp_path):
    parts, message = WRONG[case]
    with pytest.raises(fsmdp.rddl.InvalidError, match=message) as caught:
        load_problem(tmp_path, **{"pvariables": "", "cpfs": KEEP} | parts)
    assert str(caught.value).startswith("domain:instance: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"\x00\x01\x02", b"\xff\xfe" * 100, b"domain", b"// x"])
def test_files_that_hold_something_else_are_refused(content, tmp_path):
    files = write_problem(tmp_path, pvariables="", cpfs=KEEP)
    for file in files:
        kept = file.read_bytes()
        file.write_bytes(content)
        with pytest.raises(fsmdp.rddl.InvalidError, match=r"\.rddl"):
            fsmdp.rddl.load(*files, cache=False)
        file.write_bytes(kept)


def test_a_mark_at_the_beginning_of_a_file_is_no_error(tmp_path):
    files = write_problem(tmp_path, pvariables="", cpfs=KEEP)
    for file in files:
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert fsmdp.rddl.load(*files, cache=False).horizon == 5


@pytest.mark.parametrize("command", ["inspect", "plan"])
def test_a_syntax_error_is_an_error_of_the_command_line(command, tmp_path, monkeypatch, capsys):
    domain, instance = write_problem(tmp_path, cpfs="on'(?t) = = on(?t);", pvariables="")
    monkeypatch.setattr(sys, "argv", ["fsmdp", command, f"rddl:{domain}:{instance}"])
    assert entry.run() == 2
    assert "domain.rddl, line 6, column 22: '=' cannot stand here" in capsys.readouterr().err


def things(count):
    return "thing : {" + ", ".join(f"t{at}" for at in range(1, count + 1)) + "};"


LARGE = {
    "objects": ({"objects": things(10**6)}, "2000059 words and signs"),
    "fluents": ({"objects": things(10**5)}, "200000 ground instances"),
    "constants": (
        {
            "objects": things(1000),
            "pvariables": "FAR(thing, thing, thing) : { non-fluent, real, default = 0.0 };",
        },
        r"FAR has 2\^30",
    ),
    "a sum": (
        {
            "objects": things(100),
            "reward": "sum_{?x : thing, ?y : thing, ?z : thing} [on(?x) * on(?y) * on(?z)]",
        },
        "ground parts .*most of them the reward",
    ),
    "a sum of ones": (
        {"objects": things(100), "reward": "sum_{?x : thing, ?y : thing, ?z : thing} 1"},
        "ground parts",
    ),
}


@pytest.mark.parametrize("case", LARGE)
def test_what_would_be_huge_is_refused_with_its_size(case, tmp_path):
    parts, message = LARGE[case]
    with pytest.raises(fsmdp.rddl.TooLargeError, match=message):
        load_problem(tmp_path, **{"pvariables": "", "cpfs": KEEP} | parts)


def test_a_power_without_end_is_refused(tmp_path):
    with pytest.raises(fsmdp.rddl.UnsupportedError, match="the reward: pow of"):
        load_problem(tmp_path, pvariables="", cpfs=KEEP, reward="pow[10, pow[10, 10]]")


def test_a_sum_over_many_objects_is_no_bomb(tmp_path):
    model = load_problem(
        tmp_path,
        pvariables="",
        cpfs="on'(?t) = KronDelta(on(?t));",
        objects=things(300),
        reward="sum_{?x : thing} [on(?x)]",
    )
    assert len(model.rewards) == len(model.variables) == 300


COINS = {
    "pvariables": "a : { state-fluent, bool, default = true };"
    "b : { action-fluent, bool, default = false };",
    "cpfs": KEEP + "a' = a ^ ~b;",
}

DEEP = {
    "a sum": (" + ".join(["2 * a", "b", "1"] * 300), "300 * (2 * a + b + 1)"),
    "differences": (" - ".join(["2 * a", "b", "1"] * 300), "2 * a - 299 * 2 * a - 300 * (b + 1)"),
    "a product": (" * ".join(["(1 + a)", "(2 - b)"] * 300 + ["0.0"]), "0"),
    "parentheses": ("(" * MOST_FRAMES + "a - b" + ")" * MOST_FRAMES, "a - b"),
    "brackets in a sum": ("[a + (" * 2000 + "b" + ")]" * 2000, "2000 * a + b"),
    "conditions": ("if (a & b) then 7 else " * 500 + "(2 * a)", "if (a & b) then 7 else (2 * a)"),
    "negations": ("~" * 3000 + "a", "a"),
    "a junction": (" ^ ".join(["a", "~b"] * 2000), "a ^ ~b"),
    "functions": ("max[b, " * 1000 + "a" + "]" * 1000, "max[a, b]"),
}


@pytest.mark.parametrize("case", DEEP)
def test_a_long_or_deep_formula_means_what_the_short_one_means(case, tmp_path):
    limit = sys.getrecursionlimit()
    found = [load_problem(tmp_path, **COINS, reward=reward) for reward in DEEP[case]]
    deep, flat = (
        [
            model.mean_reward(state, action)
            for action in range(len(model.actions))
            for state in [(on, 0, 0, a) for on in (0, 1) for a in (0, 1)]
        ]
        for model in found
    )
    assert found[0].actions == found[1].actions
    assert deep == pytest.approx(flat)
    assert sys.getrecursionlimit() == limit


def test_a_long_sum_agrees_with_the_simulator(tmp_path):
    files = write_problem(tmp_path, **COINS, reward=" + ".join(["2 * a", "b", "1"] * 300))
    assert fsmdp.rddl.cross_check(*files, walks=2, cache=False).passed


def test_a_formula_nested_beyond_all_measure_is_refused(tmp_path):
    with pytest.raises(fsmdp.rddl.TooLargeError, match="nested too deeply"):
        load_problem(tmp_path, **COINS, reward="~" * MOST_FRAMES + "a")


def test_a_single_probability_that_is_not_one_is_no_certainty(tmp_path):
    with pytest.raises(fsmdp.rddl.UnsupportedError, match=r"sum to 0\.5"):
        load_problem(
            tmp_path,
            types=COLOUR,
            pvariables="lamp : { state-fluent, colour, default = @red };",
            cpfs=KEEP + "lamp' = Discrete(colour, @red : 0.5, @green : 0.0);",
        )


def test_an_action_called_noop_is_another_than_doing_nothing(tmp_path):
    model = load_problem(
        tmp_path,
        pvariables="noop : { action-fluent, bool, default = false };",
        cpfs="on'(?t) = on(?t) | press(?t) | noop;",
    )
    assert model.actions[0] == "~noop"
    assert "noop" in model.actions
