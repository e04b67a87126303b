"""Make the page of the command line from the commands, and the tables of learners and of engines.

Run: python docs/commands.py
"""

import re
from pathlib import Path

import typer.main

from fsmdp.cli.app import OF_LEARNERS, SECTIONS, default_text, in_words, written_out
from fsmdp.cli.entry import app
from fsmdp.experiments.learners import options_of
from fsmdp.learning.learners.registry import LEARNERS
from fsmdp.solver.engine import ENGINES

PAGE = Path(__file__).parent / "commands.md"
EXPERIMENTS = Path(__file__).parent / "experiments.md"
SOLVER = Path(__file__).parent / "solver.md"

OPENING = """\
# Command line

Made from the commands by `python docs/commands.py`. Each command has `--help` with the same words.
A MODEL is a domain with options (`sysadmin:ring:8`), an RDDL problem
(`rddl:SysAdmin_MDP_ippc2011:1`), a JSON model file, or a function of your own (`my_module:make`).
The last imports the module, from the current folder or where Python looks, and runs its code: type
names only of modules that you trust.
Results go to the standard output, progress to the error stream; exit codes are 0 for success, 1 for
runs that failed or a bound that is not proved, 2 for a mistake, 3 for what is too large, 130 after
Ctrl-C.

`fsmdp --install-completion` teaches the shell to complete commands, options and names.
"""


def plain(text: str) -> str:
    """Help without markup, in one line, as a cell of a table."""
    return " ".join(without_markup(written_out(text)).split()).replace("|", "\\|")


def without_markup(text: str) -> str:
    """Text without what makes it bold."""
    return re.sub(r"\[/?bold\]", "", text)


def option_row(option) -> str:
    """A row for an option: how it is written, what it is, and what it is unless given."""
    names = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
    metavar = f" {option.metavar}" if option.metavar else ""
    default = option.default
    shown = f"`{default}`" if isinstance(default, str | int | float) else ""
    if isinstance(default, bool):
        shown = ""
    return f"| {names}{metavar} | {plain(option.help or '')} | {shown} |"


def section(name: str, command) -> str:
    """All that there is to say of a command."""
    parameters = in_words(list(command.params))
    arguments = [one for one in parameters if one.param_type_name == "argument"]
    options = [one for one in parameters if one.param_type_name == "option"]
    usage = " ".join(
        ["fsmdp", name, *(one.metavar if one.required else f"[{one.metavar}]" for one in arguments)]
    )
    lines = [f"### {name}", "", f"`{usage}`", ""]
    for paragraph in command.help.split("\n\n"):
        lines += [" ".join(paragraph.split()), ""]
    rows = [f"| {one.metavar} | {plain(one.help or '')} | |" for one in arguments]
    lines += ["| | | unless given |", "|---|---|---|", *rows, *map(option_row, options), ""]
    examples = without_markup(command.epilog).split("\n\n")
    shown = (re.sub(r" \((.*)\)$", r"  # \1", one) for one in examples if one.startswith("fsmdp "))
    lines += ["```sh", *shown, "```", ""]
    if OF_LEARNERS in command.epilog:
        lines += learners()
    return "\n".join(lines)


def learners() -> list[str]:
    """A table of the options of every learner."""
    lines = ["| learner | what it does | options |", "|---|---|---|"]
    for entry in LEARNERS.values():
        options = "; ".join(
            f"`{name}`: {kind.description} ({default_text(default)})"
            for name, (kind, default) in options_of(entry).items()
        )
        lines.append(f"| `{entry.name}` | {entry.description} | {options} |")
    return [*lines, ""]


HEAD = "| learner | what it does | options, with defaults |\n|---|---|---|\n"


def experiments() -> str:
    """The page on experiments, with its table of learners as it should be."""
    before, _, after = EXPERIMENTS.read_text(encoding="utf-8").partition(HEAD)
    rows = "".join(
        f"| `{entry.name}` | {entry.description} | "
        f"{', '.join(short_option(*one) for one in options_of(entry).items())} |\n"
        for entry in LEARNERS.values()
    )
    return before + HEAD + rows + after[after.index("\n\n") + 1 :]


ENGINES_HEAD = "| engine | stage | share | what it does |\n|---|---|---|---|\n"


def solver() -> str:
    """The page on the solver, with its table of engines as it should be."""
    before, _, after = SOLVER.read_text(encoding="utf-8").partition(ENGINES_HEAD)
    rows = "".join(
        f"| `{engine.name}` | {engine.stage.name.lower()} | "
        f"{'' if engine.share is None else f'{engine.share:.0%}'} | {engine.summary} |\n"
        for engine in sorted(ENGINES.values(), key=lambda engine: engine.stage)
    )
    return before + ENGINES_HEAD + rows + after[after.index("\n\n") + 1 :]


def short_option(name: str, option: tuple) -> str:
    """An option, and its default if it has one that does not depend on others."""
    default = option[1]
    shown = str(default).lower() if isinstance(default, bool) else default
    return f"`{name}`" if default is None else f"`{name}` {shown}"


def page() -> str:
    """The whole page."""
    commands = typer.main.get_command(app).commands
    parts = [OPENING]
    for title, names in SECTIONS.items():
        parts.append(f"## {title}\n")
        parts += [section(name, commands[name]) for name in names]
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    EXPERIMENTS.write_text(experiments(), encoding="utf-8")
    SOLVER.write_text(solver(), encoding="utf-8")
