"""What ``results.csv`` and ``results.json`` of a results directory hold."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any


def rows_of(directory: Path) -> list[dict[str, str]]:
    with (directory / "results.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def document_of(directory: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((directory / "results.json").read_text(encoding="utf-8"))
    return document
