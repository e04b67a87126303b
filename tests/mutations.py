"""Wrong arrays and wrong plain data, made from right ones, for files that are otherwise valid."""

import copy

import numpy as np

EXTREMES = {
    "i": [0, 1, -1, 2**62, -(2**62), 2**62 + 2**40, 2**63 - 1, -(2**63), 2**31, 7],
    "f": [0.0, -1.0, np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324],
    "b": [True, False],
    "U": ["", "{}", "[]", "null", "9" * 40, '{"state": 1}'],
    "u": [0, 255, 10, 123],
}

ODD = [None, True, False, -1, 0, 1, 2, 2**70, -(2**63), 0.5, 1e308, float("nan"), float("inf")]
ODD += ["", "x", [], {}, [[]], [1], [None], ["x", "x"], {"a": 1}, {"a": None}]


def fits(value, kind):
    """Whether a whole number is one of a kind of integers."""
    return np.iinfo(kind).min <= value <= np.iinfo(kind).max


def mutated_arrays(array, rng):
    """Pairs of a label and a wrong array."""
    for value in EXTREMES[array.dtype.kind]:
        if array.dtype.kind in "iu" and not fits(value, array.dtype):
            continue
        yield f"all {value}", np.full(array.shape, value, dtype=array.dtype)
        if array.size:
            changed = array.copy()
            changed.flat[rng.integers(array.size)] = value
            yield f"one {value}", changed
    if array.dtype.kind in "if":
        with np.errstate(over="ignore"):
            yield "one more", array + 1
            yield "one less", array - 1
            yield "negative", -array
    for kind in (np.int32, ">i8", np.float32, np.float64, np.complex128, np.bool_, "S8", "M8[s]"):
        if array.dtype.kind in "ifbu" and array.dtype != kind:
            yield f"as {kind}", array.astype(kind)
    yield "as text", array.astype(str)
    yield "nothing", array.ravel()[:0]
    yield "no axis", np.zeros((), dtype=array.dtype)
    yield "an axis more", array[None]
    yield "in two columns", np.stack([array, array], axis=-1)
    if array.ndim:
        yield "reversed", array[::-1].copy()
        yield "shuffled", rng.permuted(array)
        yield "too short", array[:-1]
        yield "too long", np.concatenate([array, array[-1:]])
        yield "twice", np.concatenate([array, array])
        yield "other order", np.asfortranarray(array)
    if array.ndim > 1:
        yield "a column less", array[:, 1:]
        yield "transposed", array.T.copy()


def mutated_data(data):
    """Pairs of a label and plain data with one part, at any depth, replaced or missing."""

    def places(node, path):
        keys = node.keys() if isinstance(node, dict) else range(len(node))
        for key in list(keys)[:4] if len(path) > 1 else keys:
            yield (*path, key)
            if isinstance(node[key], dict | list):
                yield from places(node[key], (*path, key))

    for path in places(data, ()):
        for value in [*ODD, "missing", "extra"]:
            changed = copy.deepcopy(data)
            inside = changed
            for key in path[:-1]:
                inside = inside[key]
            if value == "missing":
                del inside[path[-1]]
            elif value == "extra" and isinstance(inside, dict):
                inside["extra"] = 1
            elif value == "extra":
                inside.append(inside[path[-1]])
            else:
                inside[path[-1]] = value
            yield f"{path}: {value}", changed


def damaged(content, rng, count):
    """Copies of a file with bytes flipped, zeroed, cut off, taken out or doubled."""
    for _ in range(count):
        changed = bytearray(content)
        at, length = int(rng.integers(len(content))), int(rng.integers(1, 40))
        match int(rng.integers(6)):
            case 0:
                changed[at] ^= 1 << int(rng.integers(8))
            case 1:
                changed[at : at + length] = bytes(len(changed[at : at + length]))
            case 2:
                del changed[at:]
            case 3:
                del changed[at : at + length]
            case 4:
                changed[at:at] = changed[at : at + length]
            case 5:
                changed[at] = int(rng.integers(256))
        yield bytes(changed)
