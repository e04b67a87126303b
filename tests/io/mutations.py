"""RDDL texts with tokens deleted, repeated, swapped or replaced by others."""

import random
import re
from collections.abc import Iterator
from pathlib import Path

from tests.io.rddl_texts import write_problem

from fsmdp.io.rddl.sources import repository

TOKEN = re.compile(r"[?@]?[A-Za-z][\w-]*'?|\d+\.?\d*|[<>=~]+|\s+|.", re.DOTALL)

NASTY = (
    *("?d", "?unbound", "@c9", "@nothing", "zzz", "nowhere", "zzz(?x)", "on(zzz)", "thing"),
    *("0", "-1", "1", "2", "0.5", "1.5", "-0.3", "1e9", "10000000", "9" * 40, "9" * 5000),
    *("0.0", "pos-inf", "neg-inf", "true", "false", "nan", "inf", "1.", ".5"),
    *("int", "real", "bool", "object", "state-fluent", "interm-fluent", "observ-fluent"),
    *("+", "-", "*", "/", "^", "&", "|", "~", "=>", "<=>", "==", "~=", "<", ">=", "=", "'"),
    *("(", ")", "{", "}", "[", "]", ",", ";", ":", "_", "?", "@", "$", "//", "/*"),
    *("Bernoulli(1.5)", "Bernoulli(-1)", "Bernoulli(0.5)", "KronDelta(0.5)", "KronDelta(7)"),
    *("Poisson(2.0)", "Normal(0, 1)", "Binomial(3, 0.5)", "Discrete(thing, t1 : 0.2)"),
    *("(1 / 0)", "(0 / 0)", "pow[10, pow[10, 10]]", "pow[-1, 0.5]", "exp[1000]", "ln[0]"),
    *("sqrt[-1]", "div[1, 0]", "mod[1, 0]", "log[2, 1]", "max[1]", "min[1, 2, 3]", "abs[]"),
    *("sum_{?z : zzz} [1]", "sum_{?z : thing} [1]", "(sum_{?z : bool} [1])", "frobnicate[1]"),
    *("argmax_{?z : thing} [1]", "(exists_{?q : obj} true)", "(forall_{?z : thing} ?z)"),
    *("if (true) then 1 else 0", "(if (1) then true else 2)", "$python[?x]", "det_{?x : a} 1"),
    *("switch (x) { case @a : 1 }", "default = 1", "max-nondef-actions = 0;", "horizon = -1;"),
    *("discount = 2.0;", "horizon = pos-inf;", "max-nondef-actions = 99999999999999999999;"),
    *("\u00e9", "\u2192", "\x00", "\ufeff", "\U0001f600", '"', "\\", "%", "x" * 20000),
)

HAND_WRITTEN = (
    {
        "pvariables": "count : { state-fluent, int, default = 1 }; coin : { interm-fluent, bool };",
        "cpfs": "on'(?t) = if (coin) then KronDelta(on(?t) | press(?t)) else Bernoulli(0.25);"
        "coin = Bernoulli(0.5 + UNUSED / 10); count' = min[3, count + coin];",
        "reward": "sum_{?t : thing} [on(?t) - 0.5 * press(?t)] + max[count, 2] / 2",
    },
    {
        "types": "thing : object; height : {@low, @mid, @high};",
        "pvariables": "gauge(thing) : { state-fluent, height, default = @low };"
        "NEXT(height) : { non-fluent, height, default = @high };"
        "set : { action-fluent, height, default = @mid };",
        "cpfs": "on'(?t) = exists_{?o : thing} [?o ~= ?t ^ on(?o)] | (gauge(?t) == @high);"
        "gauge'(?t) = switch (gauge(?t)) { case @low : Discrete(height, @low : 0.5, @mid : 0.25,"
        " @high : 0.25), case @mid : NEXT(gauge(?t)), default : set };",
        "reward": "sum_{?t : thing} [if (gauge(?t) == set) then 1 else -abs[2 - on(?t)]]",
        "sections": "action-preconditions { forall_{?t : thing} [press(?t) => set == @mid]; };"
        "state-invariants { forall_{?t : thing} [on(?t) | ~on(?t)]; };",
        "limit": "max-nondef-actions = 2;",
    },
    {
        "pvariables": "LINK(thing, thing) : { non-fluent, bool, default = false };"
        "COST(thing) : { non-fluent, real, default = 0.5 };"
        "near(thing) : { interm-fluent, int };",
        "cpfs": "near(?t) = sum_{?o : thing} [LINK(?o, ?t) * on(?o)];"
        "on'(?t) = Bernoulli(1 / (1 + exp[COST(?t) - near(?t)]));",
        "constants": "LINK(t1, t2); LINK(t2, t3); COST(t1) = 0.25;",
        "reward": "prod_{?t : thing} [on(?t) + COST(?t)] - avg_{?u : thing} [near(?u)]",
        "sections": "state-action-constraints { (sum_{?t : thing} press(?t)) <= 1; };",
    },
)

PUBLISHED = (
    ("SysAdmin_MDP_ippc2011", 1),
    ("Navigation_MDP_ippc2011", 1),
    ("SkillTeaching_MDP_ippc2011", 1),
    ("TriangleTireworld_MDP_ippc2014", 1),
    ("Sidewalk_rddlsim", 0),
    ("PushYourLuck_ippc2018", 1),
)


def seed_texts(folder: Path) -> list[tuple[str, str, str]]:
    """Name, domain text and instance text of the problems that are mutated."""
    found = []
    for position, parts in enumerate(HAND_WRITTEN):
        domain, instance = (file.read_text() for file in write_problem(folder, **parts))
        found.append((f"written-{position}", domain, instance))
    for name, instance_number in PUBLISHED:
        listing = repository()[name]
        files = (listing.folder / "domain.rddl", listing.folder / f"instance{instance_number}.rddl")
        domain, instance = (file.read_text(encoding="utf-8", errors="replace") for file in files)
        found.append((name, domain, instance))
    return found


def mutated(text: str, rng: random.Random) -> str:
    """A text with one to three tokens changed, more often than not so that it can be parsed."""
    tokens = TOKEN.findall(text)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places = [at for at, token in enumerate(tokens) if not token.isspace()]
        if not places:
            return "".join(tokens)
        if rng.random() < 0.6:
            _replace_alike(tokens, places, rng)
        else:
            _replace_any(tokens, places, rng)
    return "".join(tokens)


def _replace_alike(tokens: list[str], places: list[int], rng: random.Random) -> None:
    """A word, number, variable or operator by another, sometimes by a nasty one."""
    kind = rng.choice("aaa00?@o")
    alike = [at for at in places if _kind(tokens[at]) == kind]
    if alike:
        nasty = [token for token in NASTY if _kind(token) == kind]
        other = tokens[rng.choice(alike)] if rng.random() < 0.5 else rng.choice(nasty)
        tokens[rng.choice(alike)] = other


def _replace_any(tokens: list[str], places: list[int], rng: random.Random) -> None:
    at, other = rng.choice(places), rng.choice(places)
    kind = rng.randrange(7)
    if kind == 0:
        del tokens[at]
    elif kind == 1:
        tokens.insert(at, tokens[at] + " ")
    elif kind == 2:
        tokens[at], tokens[other] = tokens[other], tokens[at]
    elif kind == 3:
        tokens[at] = tokens[other]
    elif kind <= 5:
        tokens[at] = rng.choice(NASTY)
    else:
        del tokens[at : at + rng.randrange(40)]


def _kind(token: str) -> str:
    """Number, word or expression, variable, enumerated value, operator, or something else."""
    first = token[0]
    if first in "+-*/^&|<>=~":
        return "o"
    if first.isdigit() or first == ".":
        return "0"
    return "a" if first.isalpha() or (first == "(" and len(token) > 1) else first


def mutants(folder: Path, count: int, seed: int) -> Iterator[tuple[str, bytes, bytes]]:
    """Problems with a name, each with its domain, its instance, or both mutated."""
    seeds = seed_texts(folder)
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        name, domain, instance = seeds[number % len(seeds)]
        which = rng.randrange(8)
        if which == 0:
            domain, instance = mutated(domain, rng), mutated(instance, rng)
        elif which <= 5:
            domain = mutated(domain, rng)
        else:
            instance = mutated(instance, rng)
        texts = [text.encode("utf-8", "surrogatepass") for text in (domain, instance)]
        if rng.random() < 0.02:  # whole files gone wrong
            texts[rng.randrange(2)] = rng.choice(
                (b"", b"\x00" * 100, bytes(range(256)) * 4, texts[0], texts[1], texts[0][:200])
            )
        yield f"{name}#{seed}.{number}", texts[0], texts[1]
