"""Registries: the only list of each kind of thing, to which any package can add."""

import re
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from pkgutil import resolve_name
from types import MappingProxyType
from typing import TypeVar
from warnings import warn

from fsmdp.errors import FsmdpWarning, ModelError
from fsmdp.foundation.checks import clip, show, suggest

Entry = TypeVar("Entry")

GROUP = "fsmdp"
"""Entry points of other packages: modules that register something when they are imported."""

_asked = False


class Registry(Mapping[str, Entry]):
    """Entries of one kind by name, in the order in which they were registered.

    Modules that other packages name as entry points are imported when a name is missing, or when
    all names are asked for: so they are known on the command line and in worker processes too.
    `import_paths` are those of our own entries, as `module:name`: they come first, and each is
    imported when it is asked for, so that listing names imports nothing heavy. `entries` is the
    type of what `add` takes.
    """

    def __init__(
        self,
        kind: str,
        *,
        entries: type[Entry] | None = None,
        import_paths: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.kind = kind
        self._type = entries
        self._import_paths = import_paths
        self._entries: dict[str, Entry] = {}

    def add(self, entry: Entry) -> Entry:
        """Register an entry, which must be of the registry's type, under its own name."""
        if self._type is None or not isinstance(entry, self._type):
            expected = "an entry" if self._type is None else f"a {self._type.__name__}"
            raise ModelError(
                f"{self.kind}: expected {expected} to register, found {show(entry)}; make one."
            )
        return self.register(entry.name, entry)  # type: ignore[attr-defined]

    def register(self, name: str, entry: Entry, *, replace: bool = False) -> Entry:
        """Add an entry; a name that is taken is refused unless `replace` is set."""
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name):
            raise ModelError(
                f"{self.kind} {show(name)}: expected a name of letters, digits, '-', '_' and '.'; "
                "choose another."
            )
        if (name in self._entries or name in self._import_paths) and not replace:
            raise ModelError(
                f"{self.kind} {name!r} is registered already; choose another name, or pass "
                "replace=True."
            )
        self._entries[name] = entry
        return entry

    def installed(self) -> list[Entry]:
        """All entries; a package that cannot be imported is a warning, and the others count."""
        try:
            load_packages()
        except ModelError as error:
            warn(str(error), FsmdpWarning, stacklevel=3)
        return [self[name] for name in self._names()]

    def loaded(self) -> Iterable[Entry]:
        """Entries that were added so far, without importing anything."""
        return self._entries.values()

    def remove(self, name: str) -> None:
        """Take out an entry that was added."""
        if name not in self._entries:
            raise ModelError(
                f"{self.kind} {show(name)}: not registered; give a name that was added."
            )
        del self._entries[name]

    def find(self, name: object, where: str = "", also: str = "") -> Entry:
        """The entry of a name; a ModelError with the closest name, or all of them, otherwise."""
        if isinstance(name, str) and name in self:
            return self[name]
        raise self.unknown(name, where, also)

    def unknown(self, name: object, where: str = "", also: str = "") -> ModelError:
        """The error for a name that no entry has; `also` is what else its message says."""
        place = f"{where}: " if where else ""
        hint = " ".join(filter(None, (suggest(str(name), self), also)))
        return ModelError(f"{place}unknown {self.kind} {show(name)}; {hint}")

    def __getitem__(self, name: str) -> Entry:
        if name not in self._entries:
            if name in self._import_paths:
                self._entries[name] = resolve_name(self._import_paths[name])
            else:
                load_packages()
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        if name not in self._entries and name not in self._import_paths:
            load_packages()
        return name in self._entries or name in self._import_paths

    def __iter__(self) -> Iterator[str]:
        load_packages()
        return iter(self._names())

    def __len__(self) -> int:
        load_packages()
        return len(self._names())

    def __repr__(self) -> str:
        return f"Registry({self.kind}: {', '.join(self._names())})"

    def _names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self._import_paths, *self._entries)))


def load_packages() -> None:
    """Import, once, the modules that installed packages name as entry points of fsmdp."""
    global _asked
    if _asked:
        return
    _asked = True  # first, since the modules register things
    for point in entry_points(group=GROUP):
        _load(point)


def _load(point: EntryPoint) -> None:
    try:
        point.load()
    except Exception as error:
        package = point.value if point.dist is None else point.dist.name
        raise ModelError(
            f"package {package!r}: cannot import {point.value!r}, which adds to fsmdp "
            f"({type(error).__name__}: {clip(str(error))}); correct it, or uninstall the package."
        ) from error
