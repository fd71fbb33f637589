"""The numbers of experiments as Parquet files, and a SQLite registry over them, for any tool.

==================  =================================================================================================
``ccgym.sqlite``    ``results``, ``experiments``, ``conditions``, ``schemes``, ``outcomes``, ``runs``; ``files``: the
                    Parquet files with their rows and columns
``values``          a row per run and metric of its experiment
``ccperf``          a row per first run, scope and ccperf metric
``series``          a row per first run, flow and interval
==================  =================================================================================================

The first two columns of every Parquet file name the experiment (``results``, ``experiment``), the next ones
``condition`` and ``scheme``.
"""

from __future__ import annotations

import json
import os
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ccgym.errors import PlatformError
from ccgym.evaluation.exchange.tables import import_pyarrow, write_arrow
from ccgym.experiments.detail import FLOW_SERIES
from ccgym.report.site.results import StoredExperiments

DATABASE_FILE: Final = "ccgym.sqlite"

_SCHEMA: Final = """
CREATE TABLE results (name TEXT PRIMARY KEY, title TEXT, command TEXT, started TEXT, version TEXT, system TEXT,
                      backend TEXT, seed INTEGER);
CREATE TABLE experiments (results TEXT, name TEXT, title TEXT, question TEXT, setting TEXT, threshold TEXT, source TEXT,
                          metrics TEXT, PRIMARY KEY (results, name));
CREATE TABLE conditions (results TEXT, experiment TEXT, key TEXT, coordinates TEXT,
                         PRIMARY KEY (results, experiment, key));
CREATE TABLE schemes (key TEXT PRIMARY KEY, label TEXT, color TEXT, marker TEXT);
CREATE TABLE outcomes (results TEXT, experiment TEXT, scheme TEXT, verdict TEXT, headline TEXT,
                       PRIMARY KEY (results, experiment, scheme));
CREATE TABLE runs (results TEXT, experiment TEXT, condition TEXT, scheme TEXT, run INTEGER, seed TEXT, trajectory TEXT,
                   PRIMARY KEY (results, experiment, condition, scheme, run));
CREATE TABLE files (name TEXT PRIMARY KEY, rows INTEGER, columns TEXT);
"""


def write_database(found: Sequence[StoredExperiments], directory: Path) -> list[Path]:
    """Write registry and Parquet files, and return them; without pyarrow, only the registry.

    Args:
        found: The results.
        directory: Target directory; it must exist.
    """
    files: list[Path] = []
    rows: list[tuple[str, int, str]] = []
    try:
        import_pyarrow()
    except PlatformError:
        return [_registry(found, directory / DATABASE_FILE, rows)]
    for name, make in (("values", _values), ("ccperf", _ccperf), ("series", _series)):
        file = directory / f"{name}.parquet"
        table = _table(make(found))
        write_arrow(table, file, name)
        files.append(file)
        rows.append((file.name, table.num_rows, ", ".join(table.column_names)))
    return [_registry(found, directory / DATABASE_FILE, rows), *files]


def _registry(found: Sequence[StoredExperiments], file: Path, parquet: Sequence[tuple[str, int, str]]) -> Path:
    handle, name = tempfile.mkstemp(prefix=f".{file.name}.", suffix=".partial", dir=file.parent)
    os.close(handle)
    with closing(sqlite3.connect(name)) as database, database:
        database.executescript(_SCHEMA)

        def insert(table: str, rows: Iterator[tuple[Any, ...]] | Sequence[tuple[Any, ...]]) -> None:
            for row in rows:
                database.execute(f"INSERT OR IGNORE INTO {table} VALUES ({','.join('?' * len(row))})", row)

        for one in found:
            made, asked = one.document["provenance"], one.document["parameters"]
            told = made.get("command"), made.get("started"), made["versions"]["ccgym"], made.get("system")
            insert("results", [(one.name, one.title, *told, made["backend"], asked.get("seed"))])
            insert("schemes", [(s["key"], s["label"], s["color"], s["marker"]) for s in one.schemes])
            for test in one.tests:
                own = (one.name, test["name"])
                words = (test[word] for word in ("title", "question", "setting", "threshold", "source"))
                insert("experiments", [(*own, *words, json.dumps(test["metrics"], ensure_ascii=False))])
                for scheme, outcome in one.outcomes(test["name"]).items():
                    insert("outcomes", [(*own, scheme, outcome["verdict"], outcome["headline"])])
                    insert("conditions", [(*own, c["key"], json.dumps(c["at"])) for c in outcome["conditions"]])
                    insert(
                        "runs",
                        [
                            (*own, run["condition"], scheme, run["run"], str(run["seed"]), run["trajectory"])
                            for run in outcome["runs"]
                        ],
                    )
        insert("files", parquet)
    os.replace(name, file)
    file.chmod(0o644)
    return file


def _cells(found: Sequence[StoredExperiments]) -> Iterator[tuple[tuple[str, str, str, str], Any, StoredExperiments]]:
    """Yield every condition of every scheme: its names, its outcome, its results."""
    for one in found:
        for test in one.tests:
            for scheme, outcome in one.outcomes(test["name"]).items():
                for condition in outcome["conditions"]:
                    yield (one.name, test["name"], condition["key"], scheme), outcome, one


_NAMES: Final = ("results", "experiment", "condition", "scheme")

Part: TypeAlias = "tuple[tuple[str, ...], Mapping[str, Sequence[Any] | npt.NDArray[Any]]]"
"""Names that identify some rows, and the columns of these rows."""


def _table(parts: Iterable[Part]) -> Any:
    """Return one pyarrow table. Each name is stored once, with an index per row."""
    pyarrow = import_pyarrow()
    made = []
    for own, columns in parts:
        count = len(next(iter(columns.values())))
        named = {
            name: pyarrow.DictionaryArray.from_arrays(np.zeros(count, np.int32), [text])
            for name, text in zip(_NAMES, own, strict=True)
        }
        made.append(pyarrow.table({**named, **columns}))
    if not made:
        return pyarrow.table({name: pyarrow.array([], pyarrow.string()) for name in _NAMES})
    return pyarrow.concat_tables(made, promote_options="default").unify_dictionaries().combine_chunks()


def _values(found: Sequence[StoredExperiments]) -> Iterator[Part]:
    for own, outcome, _ in _cells(found):
        rows = [
            (run["run"], name, None if value is None else float(value))
            for run in outcome["runs"]
            if run["condition"] == own[2]
            for name, value in run["values"].items()
        ]
        if rows:
            yield own, dict(zip(("run", "metric", "value"), zip(*rows, strict=True), strict=True))


def _ccperf(found: Sequence[StoredExperiments]) -> Iterator[Part]:
    names = ("scope", "metric", "value", "unit", "bin_s")
    for own, outcome, one in _cells(found):
        if (kept := one.kept(outcome, own[2])) is not None:
            tables = kept.numbers["tables"]
            rows = [(scope, name, *cell) for scope, table in tables.items() for name, cell in table.items()]
            yield own, dict(zip(names, zip(*rows, strict=True), strict=True))


def _series(found: Sequence[StoredExperiments]) -> Iterator[Part]:
    for own, outcome, one in _cells(found):
        if (kept := one.kept(outcome, own[2])) is None:
            continue
        *flows, queue = kept.arrays["values"]
        for flow in range(len(flows) // len(FLOW_SERIES)):
            of_flow = flows[flow * len(FLOW_SERIES) : (flow + 1) * len(FLOW_SERIES)]
            yield (
                own,
                {
                    "flow": np.full(queue.size, flow + 1, np.int32),
                    "end_s": kept.arrays["ends_s"],
                    **{name: np.ma.masked_invalid(row) for name, row in zip(FLOW_SERIES, of_flow, strict=True)},
                    "queue_packets": np.ma.masked_invalid(queue),
                },
            )
