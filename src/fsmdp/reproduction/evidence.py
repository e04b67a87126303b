"""Evidence on disk: a folder a claim, so that what was run need not be run again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fsmdp.errors import ModelError
from fsmdp.experiments.store import DIGESTS, frame_bytes, read_frame, source_commit, versions
from fsmdp.foundation.disk import (
    DIGEST,
    check_digest,
    check_seal,
    digest_bytes,
    make_folder,
    read_file,
    seal,
    write_file,
)
from fsmdp.reproduction.claim import Evidence, Form

if TYPE_CHECKING:
    import polars

FACTS = "evidence.json"
LARGEST = 2**28


def write_evidence(folder: Path, evidence: Evidence, form: Form, seed: int, seconds: float) -> None:
    """Tables as Parquet (to read again) and CSV (to look at); the list of them comes last."""
    make_folder(folder)
    digests = {}
    for name, table in {**evidence.tables, **evidence.timed}.items():
        content = frame_bytes(table)
        digests[name] = digest_bytes(content)
        write_file(folder / f"{name}.parquet", content)
        write_file(folder / f"{name}.csv", table.write_csv().encode())
    facts = _made_by(form, seed) | {
        "tables": sorted(evidence.tables),
        "timed": sorted(evidence.timed),
        "seconds": seconds,
        "versions": versions(),
        "commit": source_commit(),
        DIGESTS: digests,
    }
    write_file(folder / FACTS, seal(facts, indent=1))


def read_evidence(folder: Path, form: Form, seed: int) -> tuple[Evidence, float] | None:
    """What an earlier run of the same form, seed and version found, and its seconds."""
    try:
        content = read_file(folder / FACTS, LARGEST)
        facts = json.loads(content)
        check_seal(content, facts.get(DIGEST), str(folder / FACTS), "run it again")
        if any(facts.get(name) != value for name, value in _made_by(form, seed).items()):
            return None
        digests = facts[DIGESTS]
        tables = {name: _read(folder, name, digests[name]) for name in facts["tables"]}
        timed = {name: _read(folder, name, digests[name]) for name in facts["timed"]}
        return Evidence(tables, timed), float(facts["seconds"])
    except (ModelError, OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None  # nothing there, or nothing that can be read: it is run again


def _made_by(form: Form, seed: int) -> dict[str, Any]:
    return {"form": str(form), "seed": seed, "fsmdp": versions()["fsmdp"]}


def _read(folder: Path, name: str, digest: str) -> polars.DataFrame:
    path = folder / f"{name}.parquet"
    content = read_file(path, LARGEST)
    check_digest(digest, digest_bytes(content), str(path), "run it again")
    return read_frame(content)
