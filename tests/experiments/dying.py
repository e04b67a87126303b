"""An engine one of whose workers dies in the middle of its run, once."""

import os
import signal
from pathlib import Path

from fsmdp.experiments.runner import execute
from fsmdp.experiments.store import CHECKPOINT

MARKER = "died"


class Deadly:
    """Does what another engine does, but the first worker kills itself after a checkpoint."""

    def __init__(self, engine):
        self.engine = engine
        self.name, self.workers, self.children = engine.name, engine.workers, engine.children

    def run(self, function, tasks):
        return self.engine.run(execute_or_die if function is execute else function, tasks)


def execute_or_die(task):
    try:
        (Path(task.folder) / MARKER).touch(exist_ok=False)
    except FileExistsError:
        return execute(task)
    usual = Path.replace

    def replace(self, target):
        done = usual(self, target)
        if Path(target).name == CHECKPOINT:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    Path.replace = replace
    return execute(task)
