"""What was compiled from older sources is forgotten, but not at once."""

import os
import time

from fsmdp import compiled


def test_folders_of_sources_long_gone_are_removed(tmp_path):
    current, recent, old = (tmp_path / f"compiled-{name}" for name in ("now", "recent", "old"))
    for folder in (current, recent, old):
        folder.mkdir()
    long_ago = time.time() - 2 * compiled.KEPT_SECONDS
    os.utime(old, (long_ago, long_ago))
    os.utime(current, (long_ago, long_ago))
    compiled._forget_older(current)
    assert sorted(tmp_path.iterdir()) == sorted([current, recent])
