"""What commands show while they work."""

import json
import math
import sys
import warnings
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from fsmdp.foundation.progress import bar, listening


@contextmanager
def working(text: str, silent: bool) -> Iterator[Callable[[str], None]]:
    """What the library logs while it works: a spinner on the error stream, or plain lines."""
    from rich.console import Console
    from rich.markup import escape

    console = Console(stderr=True)
    if silent:
        yield lambda _: None
    elif not console.is_terminal:
        with listening(lambda line: print(f"{text}: {line}", file=sys.stderr, flush=True)):
            yield lambda _: None
    else:
        with (
            console.status(text) as status,
            listening(lambda line: status.update(escape(f"{text}: {line}"))),
        ):
            yield status.update


@contextmanager
def collect_warnings() -> Iterator[list[str]]:
    """Our own warnings as lines to show, in place of Python's way of printing them."""
    from fsmdp.errors import FsmdpWarning

    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FsmdpWarning)
        yield notes
    for one in caught:
        if issubclass(one.category, FsmdpWarning):
            notes.append(str(one.message))
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


@contextmanager
def resumable(
    folder: object, what: str = "what was done is", rest: str = "from there"
) -> Iterator[None]:
    """Ctrl-C ends a command that keeps what it did; it says so, and its exit code is 130."""
    import typer

    try:
        yield
    except KeyboardInterrupt:
        text = f"fsmdp: interrupted; {what} in {folder}, the same command continues {rest}."
        print(text, file=sys.stderr)
        raise typer.Exit(130) from None


@contextmanager
def episodes_bar(text: str, in_all: int, silent: bool) -> Iterator[Callable[[int, str], None]]:
    """A bar on the error stream: episodes done, time left, and a note of the caller's."""
    if silent:
        yield lambda _, __: None
        return
    with bar(text, in_all, "episodes") as update:
        yield update


@contextmanager
def run_bars(
    names: Sequence[str], episodes: int, silent: bool
) -> Iterator[Callable[[Sequence[tuple[int, str]]], None]]:
    """A bar on the error stream for each run; called with episodes done and a note for each."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if silent or not console.is_terminal:
        yield lambda _: None
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        tasks = [bars.add_task(name, total=episodes, note="") for name in names]

        def show(seen: Sequence[tuple[int, str]]) -> None:
            for task, (done, note) in zip(tasks, seen, strict=True):
                bars.update(task, completed=done, note=note)

        yield show


def print_lines(*lines: str, soft_wrap: bool = False) -> None:
    """Lines on the output stream, as they are: brackets are no markup, numbers have no colours."""
    from rich.console import Console

    console = Console(emoji=False, markup=False, highlight=False)
    for line in lines:
        console.print(line, soft_wrap=soft_wrap)


def print_table(
    title: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: Container[str] = (),
    bold: Container[str] = (),
    no_wrap: bool = False,
    **options: Any,
) -> None:
    """A table on the output stream, its texts as they are; columns of `right` hold numbers."""
    from rich.console import Console
    from rich.table import Column, Table

    columns = (
        Column(
            heading,
            justify="right" if heading in right else "left",
            style="bold" if heading in bold else "",
            no_wrap=no_wrap,
        )
        for heading in headings
    )
    table = Table(*columns, title=title, **options)
    for row in rows:
        table.add_row(*row)
    Console(emoji=False, markup=False).print(table)


def print_facts(title: str, facts: Iterable[tuple[str, str]]) -> None:
    """What is known of one thing, a row for each fact."""
    print_table(title, ("fact", ""), facts, bold=("fact",), show_header=False, min_width=60)


def print_json(data: Any) -> None:
    """One JSON object for machines; numbers that JSON does not have become null."""
    print(json.dumps(_finite(data), allow_nan=False))


def _finite(data: Any) -> Any:
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, Mapping):
        return {key: _finite(value) for key, value in data.items()}
    return [_finite(one) for one in data] if isinstance(data, (list, tuple)) else data
