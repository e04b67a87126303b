"""Model files read twice, by the library and by the checker, and ways to write them differently."""

import json
from collections import Counter
from fractions import Fraction

import fsmdp
from fsmdp.io.models import from_bytes, to_dict
from fsmdp.verification import checker
from tests.mutations import damaged, mutated_data

NUMBERS = ["1e400", "-1e400", "-0.0", "-0", "1E0", "1e-400", "0.5e0", "9" * 400, "9" * 5000, "01"]
NUMBERS += [
    "NaN",
    "Infinity",
    "-Infinity",
    "1.",
    ".5",
    "+1",
    "0x1",
    "1_0",
    "5e-324",
    "null",
    "true",
]
NAMES = ["\\ud800", "\\ud83d\\ude00", "caf\\u00e9", "cafe\\u0301", "\\u0000", "", " ", "\\/", "\\x"]


def parts_of(model):
    """What the checker has of a model, as plain data that can be compared."""

    def table(one):
        return one.axes, tuple(one.numbers)

    def kernel(one):
        return one.drawn, table(one.chances), table(one.totals)

    def start(one):  # the library divides by the sum, in floats
        (total,) = one.totals.numbers
        return one.drawn, [round(float(Fraction(n, total)), 12) for n in one.chances.numbers]

    def rule(one):
        return table(one) if isinstance(one, checker.Table) else one

    return (
        model.about,
        (model.n_variables, model.horizon, model.discount, model.sizes),
        [{axis: kernel(one) for axis, one in drawn.items()} for drawn in model.draws],
        [[table(one) for one in terms] for terms in model.rewards],
        {axis: start(one) for axis, one in model.start.items()},
        [rule(one) for one in model.rules],
    )


def compare_readers(content):
    """(what the library says, what the checker says): "read", or the reason for refusing.

    If both read it, they have read the same model: written again from what the library has, the
    checker reads what it read before.
    """
    library = theirs = "read"
    try:
        mine = from_bytes(content)
    except fsmdp.ModelError as error:
        library = str(error)
    try:
        other = checker.read_model(content)
    except checker.BadInputError as error:
        theirs = str(error)
    if library == theirs:
        again = checker.read_model(json.dumps(to_dict(mine)).encode())
        found, expected = parts_of(other), parts_of(again)
        found[0].pop("actions"), expected[0].pop("actions")  # at_most: null may be left out
        assert found == expected, f"two meanings of {content!r}"
    return library, theirs


def escaped(text, rng):
    """The same JSON with one letter of a string written as an escape."""
    inside = [
        at
        for at, letter in enumerate(text)
        if letter.isalpha() and text.count('"', 0, at) % 2 and text[at - 1] != "\\"
    ]
    at = int(rng.choice(inside))
    return f"{text[:at]}\\u{ord(text[at]):04x}{text[at + 1 :]}"


def odd_texts(document, rng, count):
    """JSON of a document with odd spellings, numbers, names, repeated keys, and bytes before it."""
    plain = json.dumps(document)
    pairs = [at for at in range(len(plain)) if plain.startswith('": ', at)]
    for _ in range(count):
        text = escaped(plain, rng) if rng.random() < 0.5 else plain
        match int(rng.integers(7)):
            case 0:
                key = text.index('"table": ', int(rng.integers(text.rindex('"table": '))))
                text = text[:key] + escaped('"table"', rng) + text[key + 7 :]
            case 1:
                digits = [
                    at for at, one in enumerate(text) if one.isdigit() and text[at - 1] in " ["
                ]
                at = int(rng.choice(digits))
                end = next(e for e in range(at, len(text)) if text[e] in ",]} ")
                text = text[:at] + str(rng.choice(NUMBERS)) + text[end:]
            case 2:
                at = int(rng.choice(pairs))
                key, name = plain[plain.rindex('"', 0, at) + 1 : at], str(rng.choice(NAMES))
                if rng.random() < 0.5:
                    key = str(rng.choice([one["name"] for one in document["variables"]]))
                text = plain.replace(f'"{key}"', f'"{name}"', int(rng.choice([-1, 1])))
            case 3:
                at = int(rng.choice(pairs))
                start = plain.rindex('"', 0, at)
                key = plain[start : at + 1]
                key = escaped(key, rng) if rng.random() < 0.5 and key[1:2].isalpha() else key
                text = f"{plain[:start]}{key}: {rng.integers(12)}, {plain[start:]}"
            case 4:
                at = int(rng.choice(pairs))
                text = f'{plain[: at + 3]}{rng.integers(12)}, "table": [1, 0]{plain[at + 3 :]}'
            case 5:
                text = str(rng.choice(["\ufeff", "\x00", "\n\t ", "\x0c", "\u00a0"])) + text
            case 6:
                text = text.replace(": [", ":\r\n\t [", int(rng.integers(1, 9)))
        yield text.encode(errors="surrogatepass")


def read_all(contents):
    """How often both, one or none of the readers read a text, and the reasons of one against it."""
    counts, reasons = Counter(), Counter()
    for content in contents:
        library, theirs = compare_readers(content)
        counts[library == "read", theirs == "read"] += 1
        if (library == "read") != (theirs == "read"):
            by = "library" if theirs == "read" else "checker"
            reasons[by, (library if by == "library" else theirs)] += 1
    return counts, reasons


def texts(model, rng, count):
    """Wrong and odd texts of a model: wrong data, odd spellings, damaged bytes."""
    document = to_dict(model)
    wrong = [data for _, data in mutated_data(document)]
    for at in rng.permutation(len(wrong))[:count].tolist():
        yield json.dumps(wrong[at]).encode()
    yield from odd_texts(document, rng, count)
    yield from damaged(json.dumps(document).encode(), rng, count)
