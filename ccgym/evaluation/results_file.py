"""Files of every results directory: ``results.json`` with parameters and results, and ``results.csv`` with
all measured numbers, one per row.

Evaluations, experiments, leagues, scorecards, gaps and adversaries write the same two files. ``version`` increases
with any change of meaning; files of the previous version can be read, also with their former names.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from ccgym.errors import ResultsError, shown
from ccgym.files import UnreadableError, atomic_write, read_json

RESULTS_FILE: Final = "results.json"
TABLE_FILE: Final = "results.csv"
FORMAT: Final = "ccgym-results"
FORMAT_VERSION: Final = 2

LINE_LEVEL: Final = 4
"""Values at this depth of a document are written on one line: with indentation, half of such files would be spaces."""

UNITS: Final[Mapping[str, str]] = {
    "_mbps": "Mbit/s", "_ms": "ms", "_s": "s", "_packets": "packets", "loss": "fraction", "utilization": "fraction",
}  # fmt: skip
"""Units of quantities by the ends of their names; other quantities are counts, or have no unit."""


class Measurement(NamedTuple):
    """A row of ``results.csv``."""

    experiment: str
    """Name of the experiment; for an evaluation, name of its path."""
    condition: str
    """Condition of the run: a point of the sweep, a path of a scorecard, a backend of a gap; empty if there is one."""
    scheme: str
    """Key of the scheme, as in file names."""
    flow: int | None
    """Number of the flow, from 1; None (an empty cell) for all flows of the run together."""
    run: int
    """Number of the run, from 1."""
    metric: str
    """Name of the quantity: ``throughput_mbps`` of an evaluation, or the experiment's own name."""
    value: float | None
    """The number. Unknown numbers have no row."""
    unit: str
    """Unit of the value. Fractions are not in percent."""


def unit_of(name: str) -> str:
    """Return the unit of a quantity from the end of its name: ``Mbit/s`` for ``throughput_mbps``."""
    return next((unit for end, unit in UNITS.items() if name.endswith(end)), "")


def has_results(directory: Path) -> bool:
    """Return whether a directory contains results of an evaluation, in the current or previous version."""
    return any((directory / name).exists() for name in (RESULTS_FILE, "ccgym_results.json"))


def write_results(directory: Path, document: Mapping[str, Any], rows: Iterable[Measurement]) -> None:
    """Write both files.

    Args:
        directory: The results directory.
        document: ``kind``, ``parameters``, ``provenance``, ``schemes`` and further entries of the kind.
        rows: All measurements; rows without a value are left out.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Measurement._fields)
    writer.writerows(row for row in rows if row.value is not None and math.isfinite(row.value))
    atomic_write(directory / TABLE_FILE, text.getvalue())
    atomic_write(directory / RESULTS_FILE, _json(_finite(as_document(document))) + "\n")


def as_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document with its format and version added."""
    return {"format": FORMAT, "version": FORMAT_VERSION, **document}


def read_results(directory: Path) -> dict[str, Any]:
    """Return the content of ``results.json``, or of the corresponding file of the previous version.

    Raises:
        ResultsError: The file does not exist, is damaged, or has another version.
    """
    file = directory / RESULTS_FILE
    if file.exists():
        return _read(file)
    for former in sorted(directory.glob("*.json")):
        with suppress(ResultsError):
            return _read(former)
    raise ResultsError(
        "results-missing",
        "this directory contains no results",
        where=str(file),
        expected="a results directory of `ccgym evaluate`",
        hint="results are written at the end: run the same command again, and it continues where it stopped",
    )


def _read(file: Path) -> dict[str, Any]:
    try:
        document = read_json(file)
        found, version = document["format"], document["version"]
        upgrade = _UPGRADES.get((found, version))
        known = {} if upgrade is None else {**upgrade(document), "format": FORMAT, "version": FORMAT_VERSION}
        if upgrade is not None and not isinstance(known["kind"], str):
            raise TypeError("kind is no text")
    except (UnreadableError, AttributeError, KeyError, StopIteration, TypeError) as error:
        raise damaged(file, f"the file is damaged: {error!r}") from None
    if not known:
        raise ResultsError(
            "results-version",
            f"format {shown(found)}, version {shown(version)}",
            where=str(file),
            expected=f"format {FORMAT!r}, version {FORMAT_VERSION}",
            hint="run the same command again with this version of ccgym, into a new directory",
        )
    return known


def damaged(file: Path, reason: str) -> ResultsError:
    """Return the error for a file whose content ccgym did not write."""
    return ResultsError(
        "results-damaged",
        reason,
        where=str(file),
        expected="a file from `ccgym evaluate`",
        hint="run the same command again: finished runs are kept, and damaged files are written again",
    )


def _evaluation_before(document: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "evaluation", "schemes": document.pop("styles"), **document}


def _named_before(kind: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda document: {"kind": kind, "name": document.pop("experiment"), **document}


def _gap_before(document: dict[str, Any]) -> dict[str, Any]:
    first = {name: next(iter(document.pop(name).values())) for name in ("parameters", "provenance")}
    return {"kind": "gap", **first, **document}


_UPGRADES: Final[Mapping[tuple[str, int], Callable[[dict[str, Any]], dict[str, Any]]]] = {
    (FORMAT, FORMAT_VERSION): lambda document: document,
    (FORMAT, 1): _evaluation_before,
    ("ccgym-experiment", 1): _named_before("experiment"),
    ("ccgym-league", 1): _named_before("league"),
    ("ccgym-scorecard", 2): _named_before("scorecard"),
    ("ccgym-gap", 1): _gap_before,
}
"""By format and version: the function that converts a document to the current version."""


def _finite(data: Any) -> Any:
    """Return the data with None for numbers that JSON cannot represent."""
    if isinstance(data, Mapping):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def _json(value: Any, level: int = 0) -> str:
    """Return JSON with one line per run, condition and criterion."""
    if level == LINE_LEVEL or not isinstance(value, (dict, list)) or not value:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    between = "\n" + " " * (level + 1)
    if isinstance(value, list):
        first, last, parts = "[", "]", [_json(one, level + 1) for one in value]
    else:
        first, last = "{", "}"
        parts = [f"{json.dumps(str(key), ensure_ascii=False)}: {_json(one, level + 1)}" for key, one in value.items()]
    return first + between + f",{between}".join(parts) + "\n" + " " * level + last
