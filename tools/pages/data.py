"""Tables and records that pages are written from."""

from __future__ import annotations

import csv
import json
from functools import cache
from typing import Any

from pages.markdown import ROOT


@cache
def kept_rows(name: str) -> list[dict[str, str]]:
    """The rows of a table in docs/data."""
    with (ROOT / f"docs/data/{name}.csv").open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def recorded(experiment: str) -> dict[str, dict[str, dict[str, float]]]:
    """What an experiment left in docs/data, by scheme, condition and metric: means over the runs."""
    means: dict[str, dict[str, dict[str, float]]] = {}
    for row in kept_rows(experiment):
        if row["mean"]:
            means.setdefault(row["scheme"], {}).setdefault(row["condition"], {})[row["metric"]] = float(row["mean"])
    return means


def agents(file: str) -> dict[str, dict[str, Any]]:
    """A file of every agent that comes along, by the agent's name."""
    return {path.parent.name: json.loads(path.read_text()) for path in sorted((ROOT / "agents").glob(f"*/{file}"))}
