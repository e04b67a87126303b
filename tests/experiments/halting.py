"""`fsmdp` with a process that halts at a chosen point, so that a test can do what it wants there.

`HALT` holds when ("before" or "after"), the name of a file that is put in its place, and how often
that must happen in a process, or in a worker's run. The first process to come that far writes its
number to the file `HALTED`, once, and waits for whatever comes.
"""

import os
import time
from pathlib import Path

from fsmdp.cli import start
from fsmdp.experiments import runner

usual = Path.replace
seen = 0


def main():
    Path.replace = replace
    runner.execute = execute
    start.main()


def execute(task):
    """A run in a worker, which has imported this module to find the function."""
    global seen
    seen = 0
    Path.replace = replace
    return runner.execute(task)


def replace(self, target):
    global seen
    when, name, often = os.environ["HALT"].split()
    if Path(target).name != name:
        return usual(self, target)
    seen += 1
    if seen == int(often) and when == "before":
        halt()
    done = usual(self, target)
    if seen == int(often) and when == "after":
        halt()
    return done


def halt():
    path = Path(os.environ["HALTED"])
    try:
        with path.open("x") as file:
            file.write(str(os.getpid()))
    except FileExistsError:
        return
    while True:
        time.sleep(0.05)
