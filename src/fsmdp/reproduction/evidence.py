"""Evidence on disk: a folder a claim, so that what was run need not be run again."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import polars

from fsmdp.errors import ModelError
from fsmdp.experiments.provenance import source_commit, versions
from fsmdp.model.disk import make_folder, read_file, write_file
from fsmdp.reproduction.claim import Evidence, Form

FACTS = "evidence.json"
LARGEST = 2**28


def write_evidence(folder: Path, evidence: Evidence, form: Form, seed: int, seconds: float) -> None:
    """Tables as Parquet (to read again) and CSV (to look at); the list of them comes last."""
    make_folder(folder)
    for name, table in {**evidence.tables, **evidence.timed}.items():
        content = io.BytesIO()
        table.write_parquet(content)
        write_file(folder / f"{name}.parquet", content.getvalue())
        write_file(folder / f"{name}.csv", table.write_csv().encode())
    facts = _made_by(form, seed) | {
        "tables": sorted(evidence.tables),
        "timed": sorted(evidence.timed),
        "seconds": seconds,
        "versions": versions(),
        "commit": source_commit(),
    }
    write_file(folder / FACTS, json.dumps(facts, indent=1).encode())


def read_evidence(folder: Path, form: Form, seed: int) -> tuple[Evidence, float] | None:
    """What an earlier run of the same form, seed and version found, and its seconds."""
    try:
        facts = json.loads(read_file(folder / FACTS, LARGEST))
        if any(facts.get(name) != value for name, value in _made_by(form, seed).items()):
            return None
        tables = {name: _read(folder, name) for name in facts["tables"]}
        timed = {name: _read(folder, name) for name in facts["timed"]}
        return Evidence(tables, timed), float(facts["seconds"])
    except (ModelError, OSError, ValueError, KeyError, polars.exceptions.PolarsError):
        return None  # nothing there, or nothing that can be read: it is run again


def _made_by(form: Form, seed: int) -> dict[str, Any]:
    return {"form": str(form), "seed": seed, "fsmdp": versions()["fsmdp"]}


def _read(folder: Path, name: str) -> polars.DataFrame:
    return polars.read_parquet(io.BytesIO(read_file(folder / f"{name}.parquet", LARGEST)))
