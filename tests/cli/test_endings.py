"""How commands end when what they write to, or where they run, is not as usual."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fsmdp.cli import entry, screen
from fsmdp.io.rddl import loading as cache


def command(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "fsmdp", *arguments], stderr=subprocess.PIPE, check=False, **options
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device here")
def test_a_full_disk_is_one_line_and_exit_code_2():
    with Path("/dev/full").open("wb") as full:
        done = command("inspect", "--list", "--json", stdout=full)
    assert done.returncode == 2
    assert done.stderr.startswith(b"fsmdp: ")
    assert b"Traceback" not in done.stderr


def test_a_reader_that_has_seen_enough_is_no_error():
    for shape in ([], ["--json"]):
        read, write = os.pipe()
        os.close(read)
        with os.fdopen(write, "wb") as nobody_reads:
            done = command("inspect", "--list", *shape, stdout=nobody_reads)
        assert (done.returncode, done.stderr) == (0, b"")


ASKED = {
    "inspect": ["inspect", "sysadmin:ring:3"],
    "list": ["inspect", "--list"],
    "plan": ["plan", "sysadmin:ring:3", "--episodes", "10"],
    "simulate": ["simulate", "sysadmin:ring:3", "--episodes", "10"],
    "learn": ["learn", "sysadmin:ring:3", "--episodes", "3"],
    "help": ["compare", "--help"],
}


@pytest.mark.parametrize("name", ASKED)
def test_output_in_ascii_is_spelt_out(name):
    ascii_only = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = command(*ASKED[name], stdout=subprocess.PIPE, env=ascii_only)
    assert done.returncode == 0
    assert done.stdout.isascii()
    assert done.stderr.isascii()
    assert b"Traceback" not in done.stderr
    if name in ("plan", "simulate"):
        assert b" +/- " in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("encoding", "text", "shown"),
    [
        ("ascii", "1 ± 2 ≤ δ", b"1 +/- 2 <= \\u03b4"),
        ("utf-8", "1 ± 2 ≤ δ", "1 ± 2 ≤ δ".encode()),
        ("latin-1", "1 ± 2 ≤ δ", "1 ± 2 <= \\u03b4".encode("latin-1")),
        ("utf-8", os.fsdecode(b"a\xff"), b"a\xff"),
        ("ascii", "\ud800", b"\\ud800"),
    ],
)
def test_whatever_is_printed_can_be_encoded(encoding, text, shown):
    entry.print_anything()
    assert text.encode(encoding, "fsmdp") == shown


def test_an_interrupt_is_one_line_from_the_first_import_of_ours_on():
    """Ours are seen to by a finder of modules, which interrupts before each of them in turn."""
    code = (
        "import importlib.abc, os, signal, sys\n"
        "import fsmdp.cli.start\n"
        "class Interrupt(importlib.abc.MetaPathFinder):\n"
        "    left = int(sys.argv.pop(1))\n"
        "    def find_spec(self, *_):\n"
        "        Interrupt.left -= 1\n"
        "        if Interrupt.left == 0:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "fsmdp.cli.start.main()\n"
    )
    for imports in (1, 2, 10, 50, 150, 300):
        done = subprocess.run(
            [sys.executable, "-c", code, str(imports), "inspect", "sysadmin:ring:3"],
            capture_output=True,
        )
        assert (done.returncode, done.stderr) == (130, b"fsmdp: interrupted\n"), imports


@pytest.mark.parametrize("way", [["-m", "fsmdp"], ["-c", "from fsmdp.cli import main; main()"]])
def test_little_is_imported_before_interrupts_are_seen_to(way):
    """Until then an interrupt is Python's own affair, and shows where it came."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *way, "--version"], capture_output=True, text=True
    )
    names = [line.rpartition("|")[2].strip() for line in done.stderr.splitlines()]
    before = names[names.index("site") + 1 : names.index("fsmdp.cli.start")]
    ours = [name for name in before if name.startswith("fsmdp")]
    assert ours == ["fsmdp.gymnasium_hook", "fsmdp"]
    assert not {"typing", "typer", "numpy", "asyncio", "importlib.metadata"} & set(before)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (type("PanicException", (BaseException,), {})("at line 3:\nno such column"), 2),
        (MemoryError(), 3),
        (RuntimeError("can't start new thread"), 3),
        (OSError(28, "No space left on device"), 2),
    ],
)
def test_what_a_user_can_mend_is_one_line(error, code, monkeypatch, capsys):
    def fail():
        raise error

    monkeypatch.setattr(entry, "app", fail)
    assert entry.run() == code
    err = capsys.readouterr().err
    assert err.startswith("fsmdp: ")
    assert err.count("\n") == 1


def test_a_mistake_of_ours_keeps_its_traceback(monkeypatch):
    def fail():
        raise ZeroDivisionError

    monkeypatch.setattr(entry, "app", fail)
    with pytest.raises(ZeroDivisionError):
        entry.run()


def test_a_second_interrupt_does_not_wait():
    code = (
        "import os, signal\n"
        "from fsmdp.cli import entry, start\n"
        "def interrupt_twice():\n"
        "    for _ in range(2):\n"
        "        try:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "        except KeyboardInterrupt:\n"
        "            pass\n"
        "entry.app = interrupt_twice\n"
        "start.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert (done.returncode, done.stderr) == (130, b"fsmdp: interrupted\n")


def test_an_interrupt_where_nothing_can_be_raised_ends_the_command():
    code = (
        "import os, signal\n"
        "from fsmdp.cli import entry, start\n"
        "class Late:\n"
        "    def __del__(self):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "def hang():\n"
        "    Late()\n"
        "    signal.pause()\n"
        "entry.app = hang\n"
        "start.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert (done.returncode, done.stderr) == (130, b"fsmdp: interrupted\n")


def test_numbers_that_json_lacks_are_null(capsys):
    screen.print_json({"mean": float("nan"), "rows": [{"best": float("-inf")}, (1.5, None)]})
    assert json.loads(capsys.readouterr().out) == {
        "mean": None,
        "rows": [{"best": None}, [1.5, None]],
    }


def test_markup_in_the_name_of_a_plan_file_stays_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "q[bold]x[/b].npz"
    arguments = ["plan", "sysadmin:ring:3", "--episodes", "10", "--output"]
    (tmp_path / "q[bold]x[").mkdir()
    done = CliRunner().invoke(entry.app, [*arguments, name])
    assert done.exit_code == 0, done.exception
    assert name in done.output


def test_without_a_home_imported_models_are_kept_among_temporary_files(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert cache.cache_folder().parts[-2:] == ("fsmdp", "rddl")


def test_an_interrupted_reproduction_says_what_is_kept(monkeypatch, tmp_path):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("fsmdp.reproduction.reproduce.reproduce", interrupt)
    done = CliRunner().invoke(entry.app, ["reproduce", "--output", str(tmp_path)])
    assert done.exit_code == 130
    assert "finished claims are in" in done.output


@pytest.mark.skipif(os.name != "posix", reason="limits as on POSIX")
@pytest.mark.parametrize(("name", "megabytes"), [("learn", 600), ("compare", 600), ("plan", 400)])
def test_too_few_addresses_are_one_line_and_exit_code_3(name, megabytes, tmp_path):
    """Data frames would abort the process, and BLAS wait for threads that cannot be started."""
    import resource

    specification, folder = tmp_path / "ring.toml", tmp_path / "runs"
    specification.write_text(
        'name = "ring"\nepisodes = 3\nseeds = 1\n[[models]]\nmodel = "sysadmin:ring:3:horizon=4"\n'
        '[[learners]]\nlearner = "psrl"\n'
    )
    sweep = ["compare", str(specification), "--output", str(folder)]
    arguments = sweep if name == "compare" else [*ASKED[name]]
    if name == "compare":
        assert command(*sweep, stdout=subprocess.PIPE).returncode == 0

    def written():
        return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    before = written()
    size = megabytes * 10**6
    done = command(
        *arguments,
        stdout=subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)),
    )
    assert done.returncode == 3, done
    last = done.stderr.splitlines()[-1]
    assert last.startswith(b"fsmdp: ")
    assert b"GiB of addresses" in last or b"not enough memory" in last
    assert b"Traceback" not in done.stderr
    assert written() == before
