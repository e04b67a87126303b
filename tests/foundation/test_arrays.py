"""Files of arrays have one meaning: whatever is not exactly as it is written is refused."""

import io
import warnings
import zipfile

import numpy as np
import pytest

from fsmdp import ModelError
from fsmdp.foundation.disk import (
    EPOCH,
    PRIVATE,
    UNIX,
    array_bytes,
    digest_arrays,
    pack_json,
    read_arrays,
    unpack_json,
    write_arrays,
)

ARRAYS = {
    "floats": np.arange(6.0).reshape(2, 3),
    "part/truth": np.array([True, False]),
    "number": np.array(3),
    "nothing": np.zeros((0, 2)),
    "bytes": np.arange(9, dtype=np.uint8),
}


def members(arrays):
    return {f"{name}.npy": array_bytes(array) for name, array in arrays.items()}


def sealed(arrays=ARRAYS):
    return members(arrays | {"digest": np.array(digest_arrays(arrays))})


def archive(parts, change=None, comment=b"", force_zip64=False, kind=0):
    """An archive as the library writes it, but for what is changed."""
    content = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(content, "w") as packed:
        warnings.simplefilter("ignore")  # of names that are there twice
        for name, data in parts:
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.create_system, entry.external_attr, entry.compress_type = UNIX, PRIVATE, kind
            if change is not None:
                change(entry)
            with packed.open(entry, "w", force_zip64=force_zip64) as file:
                file.write(data)
        packed.comment = comment
    return content.getvalue()


@pytest.fixture
def read(tmp_path):
    def function(content):
        path = tmp_path / "file.npz"
        path.write_bytes(content)
        return read_arrays(path, 2**16, "file", "write it again")

    return function


@pytest.mark.parametrize("compress", [False, True])
def test_what_is_written_is_read_here_and_by_numpy(compress, tmp_path):
    path = tmp_path / "file.npz"
    write_arrays(path, ARRAYS, compress=compress)
    again = read_arrays(path, 2**16, "file", "write it again")
    assert again.keys() == ARRAYS.keys()
    with np.load(path) as stored:
        assert {*stored.files} == {*ARRAYS, "digest"}
        for name, array in ARRAYS.items():
            for found in (again[name], stored[name]):
                assert found.dtype == array.dtype
                np.testing.assert_array_equal(found, array)


def test_the_archives_of_these_tests_are_right_without_a_change(read):
    for kind in (0, 8):
        assert read(archive(sealed().items(), kind=kind)).keys() == ARRAYS.keys()


PARTS = list(sealed().items())
NUMBERS = sealed()["floats.npy"]


def with_member(name, data):
    return archive((sealed() | {name: data}).items())


def numpy_array(array, version=(1, 0)):
    content = io.BytesIO()
    np.lib.format.write_array(content, array, version=version)
    return content.getvalue()


def set_extra(entry):
    entry.extra = b"\xff\xff\0\0"


WRONG = {
    "bytes before it": b"more" + archive(PARTS),
    "bytes after it": archive(PARTS) + b"more",
    "a comment": archive(PARTS, comment=b"more"),
    "a name twice": archive([*PARTS, PARTS[0]]),
    "a member without the ending": archive([*PARTS, ("floats", NUMBERS)]),
    "extra fields": archive(PARTS, set_extra),
    "a date": archive(PARTS, lambda entry: setattr(entry, "date_time", (2020, 1, 1, 0, 0, 0))),
    "other permissions": archive(PARTS, lambda entry: setattr(entry, "external_attr", 1)),
    "zip64 fields": archive(PARTS, force_zip64=True),
    "another compression": archive(PARTS, kind=zipfile.ZIP_BZIP2),
    "a gap": archive(PARTS).replace(b"PK\1\2", b"more" + b"PK\1\2", 1),
    "a directory without a member": archive(PARTS).replace(b"PK\1\2", b"PK\1\3", 1),
    "nothing": archive([]),
    "bytes after the numbers": with_member("floats.npy", NUMBERS + b"\0"),
    "too few numbers": with_member("floats.npy", NUMBERS[:-1]),
    "another version of a header": with_member("floats.npy", numpy_array(ARRAYS["floats"], (2, 0))),
    "columns first": with_member("floats.npy", numpy_array(np.asfortranarray(ARRAYS["floats"]))),
    "two spaces in a header": with_member("floats.npy", NUMBERS.replace(b"(2, 3)", b"(2,  3)")),
    "other truth values": with_member("part/truth.npy", sealed()["part/truth.npy"][:-1] + b"\2"),
    "complex numbers": with_member("floats.npy", array_bytes(np.zeros((2, 3), complex))),
    "other bytes first": with_member("floats.npy", numpy_array(ARRAYS["floats"].astype(">f8"))),
}


@pytest.mark.parametrize("label", WRONG)
def test_anything_else_is_refused(label, read):
    with pytest.raises(ModelError, match="is not a file: "):
        read(WRONG[label])


def test_archives_that_unpack_to_much_are_not_unpacked(read):
    with pytest.raises(ModelError, match="unpacks to more than 65536 bytes"):
        read(archive([("a.npy", bytes(2**16 + 1))], kind=8))
    # The directory and the header lie: what is unpacked is limited by what they say.
    content = archive([("a.npy", bytes(2**20))], kind=8)
    said = (2**20).to_bytes(4, "little")
    with pytest.raises(ModelError, match="is damaged"):
        read(content.replace(said, (100).to_bytes(4, "little")))


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (b'{"a":1,"a":2}', "a key twice"),
        (b'{"b":{"a":1,"a":1}}', "a key twice"),
        (b"NaN", "holds NaN"),
        (b"[-Infinity]", "holds -Infinity"),
        (b"\xff", "decode"),
        ('{"a":1}'.encode("utf-16"), "decode"),
        (b"[" * 10**5, "nested too deeply|entries"),
        (b"[" + b"[]," * 400, "entries"),
        (b" " * 2000, "2000 bytes"),
    ],
)
def test_descriptions_are_read_strictly(text, match):
    with pytest.raises(ValueError, match=match):
        unpack_json(np.frombuffer(text, dtype=np.uint8), 1000 if len(text) < 10**4 else 10**6, 500)
    assert unpack_json(pack_json({"a": [1, 2.5]}), 100, 10) == {"a": [1, 2.5]}
