"""Models and bases by what a user writes for them: a registry of readers, and import paths.

Importing a module runs it. What a user types, or writes in Python, may import; a file may come
from somebody else, so a specification that names modules is read only if that is allowed.
"""

import importlib
import json
import os
import re
import sys
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType, MethodType
from typing import Annotated, Any

from pydantic import Field, ValidationError

from fsmdp.domains.registry import DOMAINS, build_domain, start_value_of_domain
from fsmdp.errors import FsmdpError, ModelError
from fsmdp.foundation.checks import clip, show
from fsmdp.foundation.disk import read_file, seal
from fsmdp.foundation.kinds import Document, explain
from fsmdp.foundation.registry import Registry
from fsmdp.model.basis import Basis
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Table

IMPORT_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")

ALLOW_CODE = (
    "correct the name, or, if you trust the file and the modules that it names, allow it with "
    "--allow-code, or read_specification(path, allow_code=True) in Python"
)

SEARCHED = "beside the specification, in the current folder, and where Python looks"
"""Where modules are found."""


def search_folder(folder: str | os.PathLike[str]) -> None:
    """Search a folder for modules too, after all others."""
    path = str(Path(folder).resolve())
    if path not in sys.path:
        sys.path.append(path)


def is_import_path(text: str) -> bool:
    """Whether text is an import path whose module can be found; imports nothing."""
    if not IMPORT_PATH.fullmatch(text):
        return False
    search_folder(os.curdir)
    try:
        return find_spec(re.split("[.:]", text)[0]) is not None
    except ValueError:  # a module without a specification, such as __main__
        return False


def refuse_code(text: str | None, known: Container[str], kind: str, where: str) -> None:
    """Refuse what is no known name and would be imported."""
    if text is not None and IMPORT_PATH.fullmatch(text) and text not in known:
        raise ModelError(
            f"{where}: {show(text)} is no {kind} of fsmdp and would be imported, which runs code "
            f"of module {show(text.partition(':')[0])}; {ALLOW_CODE}."
        )


def module_hint(text: object) -> str:
    """What messages add about an unknown name that may have been meant as an import path."""
    if not isinstance(text, str) or not IMPORT_PATH.fullmatch(text):
        return ""
    module = text.partition(":")[0]
    return f"Nor can module {module!r} be imported, which is looked for {SEARCHED}."


def import_function(text: str, where: str) -> Callable[..., Any]:
    """The function or class at an import path."""
    if not IMPORT_PATH.fullmatch(text):
        raise ModelError(
            f"{where}: expected the import path of a function, such as my_module:make, found "
            f"{show(text)}."
        )
    search_folder(os.curdir)
    module, _, name = text.partition(":")
    if module.partition(".")[0] in sys.stdlib_module_names:
        raise ModelError(
            f"{where}: {text!r} is of Python's standard library, which makes nothing of fsmdp; "
            "expected a function or a class of your own."
        )
    try:
        found = getattr(importlib.import_module(module), name)
    except AttributeError:
        raise ModelError(
            f"{where}: module {module!r} has no {name!r}; correct the name after the colon."
        ) from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too: a module must not end the process
        raise ModelError(
            f"{where}: cannot import {module!r} ({type(error).__name__}: {clip(str(error))}); it "
            f"is looked for {SEARCHED}."
        ) from error
    if not _is_written_in_python(found):
        raise ModelError(
            f"{where}: {text!r} is {show(found)}, expected a function or a class written in Python."
        )
    return found  # type: ignore[no-any-return]


def _is_written_in_python(found: object) -> bool:
    """Whether a call of something runs Python code, or makes an object of a class in Python.

    Compiled functions say nothing of what they take, and may end the process.
    """
    if isinstance(found, partial):
        return _is_written_in_python(found.func)
    if isinstance(found, type):
        members = (member for base in found.__mro__ for member in vars(base).values())
        return any(isinstance(member, FunctionType) for member in members)
    if isinstance(found, FunctionType | MethodType):
        return True
    return callable(found) and isinstance(type(found).__call__, FunctionType)


def call_function(
    text: str, where: str, make: Callable[..., Any], *given: Any, **named: Any
) -> Any:
    """What a function of the user's own returns; a failure is a ModelError that names it."""
    try:
        return make(*given, **named)
    except (FsmdpError, KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:  # SystemExit too: a function must not end the process
        raise ModelError(
            f"{where}: {text!r} failed ({type(error).__name__}: {clip(str(error))}); correct it."
        ) from error


def make_from(text: str, where: str, kind: type, *arguments: Any) -> Any:
    """What a function of the user's own makes, or an object of a class, which must be of a kind."""
    make = import_function(text, where)
    if isinstance(make, type) and not issubclass(make, kind):
        raise ModelError(
            f"{where}: {text!r} is a class of something else, expected something of type "
            f"{kind.__name__}; return one."
        )
    found = call_function(text, where, make, *arguments)
    if not isinstance(found, kind):
        raise ModelError(
            f"{where}: {text!r} made {show(found)}, expected something of type {kind.__name__}; "
            "return one."
        )
    return found


LARGEST_BASIS_FILE = 2**24


class FunctionTable(Document):
    """A function of a few variables: an entry for each of their values, axes in their order."""

    scope: Annotated[list[str], Field(min_length=1)]
    values: Any


class BasisFile(Document):
    """A basis: all indicators of blocks, and functions."""

    name: str = "own"
    blocks: list[Annotated[list[str], Field(min_length=1)]] = Field(default_factory=list)
    functions: list[FunctionTable] = Field(default_factory=list)


def read_basis_file(path: str | os.PathLike[str]) -> str:
    """The content of a basis file, named after it."""
    content = read_file(path, LARGEST_BASIS_FILE)
    try:
        data = json.loads(content)
        name = str(data.get("name", Path(path).stem))
    except (ValueError, RecursionError, AttributeError) as error:
        raise ModelError(f"{path}: expected a JSON object: {clip(str(error))}.") from None
    return written(data, name)


def is_written(text: str) -> bool:
    """Whether the text of a basis is the basis itself, and no name."""
    return text.lstrip().startswith("{")


def written(data: Mapping[str, Any], name: str) -> str:
    """A basis as text, which any worker can read."""
    return json.dumps({**data, "name": name})


def basis_name(text: str) -> str:
    """What to call a basis in a table."""
    return _parse(text).name if is_written(text) else text


def basis_of_blocks(blocks: Sequence[Sequence[str]]) -> str:
    """Blocks of variables as the text of a basis."""
    largest = max(map(len, blocks), default=0)
    return written({"blocks": [list(one) for one in blocks]}, f"blocks of up to {largest}")


def basis_from_text(model: Any, text: str) -> Basis:
    """The basis that text describes, for a model."""
    read = _parse(text)
    of_blocks = Basis.blocks(model, read.blocks).tables[1:] if read.blocks else ()
    own = [Table(one.scope, one.values) for one in read.functions]
    return Basis([*of_blocks, *own]).bind(model.variables)


def _parse(text: str) -> BasisFile:
    try:
        return BasisFile.model_validate(json.loads(text))
    except ValidationError as error:
        raise ModelError(explain(error, "basis")) from None
    except (ValueError, RecursionError) as error:
        raise ModelError(f"basis: not JSON: {clip(str(error))}; correct it.") from None


BASES: Registry[Callable[[Any], Basis]] = Registry(
    "basis",
    import_paths={
        "singles": "fsmdp.model.basis:Basis.singles",
        "pairs": "fsmdp.model.basis:Basis.pairs",  # of variables that depend on one another
        "objects": "fsmdp.io.rddl.loading:object_basis",
    },
)
"""What makes a basis for a model."""


@dataclass(frozen=True, slots=True, eq=False)
class Reader:
    """A way to write a model: `reads` says whether text is written that way, `read` builds it.

    `complete` gives texts that continue what was typed, for shells. `runs_code` is true if reading
    imports a module that the text names, `portable` if the text means the same model on every
    machine. `start_value` gives V* at the start where the reader knows it in closed form.
    `document` gives the bytes of a model file where the text names one. `usage` says how such text
    is written, for `fsmdp inspect --list`; with None the reader is left out there.
    """

    name: str
    reads: Callable[[str], bool]
    read: Callable[[str], FactoredMDP]
    complete: Callable[[str], Iterable[str]] = lambda _: ()
    runs_code: bool = False
    portable: bool = False
    start_value: Callable[[str], float | None] = lambda _: None
    document: Callable[[str], bytes] | None = None
    usage: str | None = ""


READERS: Registry[Reader] = Registry("reader", entries=Reader)
"""Readers of models; the one that was added last is asked first."""


def find_reader(text: str) -> Reader:
    """The reader of a text; a ModelError with the closest name of a domain if there is none.

    Installed packages are asked if no reader knows the text; a file that none knows is JSON.
    """
    for known in (READERS.loaded, READERS.values):
        for reader in reversed(list(known())):
            if reader.reads(text):
                return reader
    if Path(text).is_file():
        return READERS["json"]
    raise DOMAINS.unknown(text.partition(":")[0], also=module_hint(text))


def reads_without_code(text: str) -> bool:
    """Whether some reader builds the model of a text without importing what the text names."""
    known = (reader for reader in READERS.values() if not reader.runs_code)
    return any(reader.reads(text) for reader in known) or Path(text).is_file()


def read_model(text: str) -> FactoredMDP:
    """A model from what a user types: a domain with options, an RDDL problem, a file, a function.

    A function, `my_module:make`, takes no arguments and returns a FactoredMDP.
    """
    return find_reader(text).read(text)


def model_document(text: str) -> bytes:
    """The content of a model file: the one that is named, or what `save` would write."""
    from fsmdp.io.models import to_dict

    reader = find_reader(text)
    return seal(to_dict(reader.read(text))) if reader.document is None else reader.document(text)


def complete_model(begun: str) -> list[str]:
    """Texts of models that continue what was typed."""
    found = (text for reader in READERS.values() for text in reader.complete(begun))
    return [text for text in found if text.startswith(begun)]


READERS.add(
    Reader(
        "import-path",
        is_import_path,
        lambda text: make_from(text, "model", FactoredMDP),
        runs_code=True,
        usage="my_module:make, a function that returns a model; its module is imported",
    )
)
READERS.add(
    Reader(
        "domain",
        lambda text: text.partition(":")[0] in DOMAINS,
        build_domain,
        lambda _: DOMAINS,
        portable=True,
        start_value=start_value_of_domain,
        usage="name:value:… or name:option=value:…, one of the domains",
    )
)


def _load(text: str) -> FactoredMDP:
    from fsmdp.io.models import load

    return load(text)


def _content(text: str) -> bytes:
    from fsmdp.io.models import LARGEST_FILE

    return read_file(text, LARGEST_FILE)


READERS.add(
    Reader(
        "json",
        lambda text: text.endswith(".json"),
        _load,
        lambda _: (path.name for path in Path().glob("*.json")),
        document=_content,
        usage="FILE.json, as fsmdp.save writes it",
    )
)


def _refuse_plan(text: str) -> FactoredMDP:
    raise ModelError(
        f"{text}: expected a model, found the name of a plan's file; give the model it was made "
        f"for, as in fsmdp simulate MODEL --policy {text}."
    )


READERS.add(Reader("plan-file", lambda text: text.endswith(".npz"), _refuse_plan, usage=None))


def read_rddl_name(text: str) -> tuple[str, str, bool]:
    """Domain, instance and whether to join exclusive fluents, from `rddl:DOMAIN:INSTANCE[:join]`.

    Domain and instance may be the paths of two files.
    """
    parts = text.removeprefix("rddl:").split(":")
    if all(parts) and (len(parts) == 2 or (len(parts) == 3 and parts[2] == "join")):
        return parts[0], parts[1], len(parts) == 3
    raise ModelError(
        f"{text!r}: expected rddl:DOMAIN:INSTANCE or rddl:DOMAIN:INSTANCE:join, with names in "
        "rddlrepository or paths of two files, such as rddl:SysAdmin_MDP_ippc2011:1."
    )


def _read_rddl(text: str) -> FactoredMDP:
    from fsmdp.io.rddl.loading import load

    domain, instance, join = read_rddl_name(text)
    return load(domain, instance, join=join)


def _complete_rddl(begun: str) -> Iterable[str]:
    """Domains of the repository, and instances of the one that is written already."""
    from fsmdp.io.rddl.sources import repository

    if not begun.startswith("rddl:"):
        return ["rddl"]
    try:
        known = repository()
    except ModelError:  # the extra is not installed
        return []
    domain = begun.split(":")[1]
    instances = known[domain].instances if domain in known else ()
    return [
        *(f"rddl:{name}" for name in known),
        *(f"rddl:{domain}:{instance}" for instance in instances),
    ]


READERS.add(
    Reader(
        "rddl",
        lambda text: text.startswith("rddl:"),
        _read_rddl,
        _complete_rddl,
        usage="rddl:DOMAIN:INSTANCE, of rddlrepository or two files (with the extra 'rddl')",
    )
)


def read_basis(model: Any, text: str) -> Basis:
    """A basis by its name, by a function of a model (`my_module:basis`), from a file or as JSON."""
    if is_written(text):
        return basis_from_text(model, text)
    if text.endswith(".json"):
        return basis_from_text(model, read_basis_file(text))
    if text in BASES:
        return BASES[text](model)
    if is_import_path(text):
        found: Basis = make_from(text, "basis", Basis, model)
        return found.bind(model.variables)
    return BASES.find(text, also=module_hint(text))(model)
