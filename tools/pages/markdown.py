"""Markdown, piece by piece."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def cell(text: object) -> str:
    """A value inside a Markdown table."""
    return str(text).replace("|", "\\|").replace("\n", " ")


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """A Markdown table."""
    lines = [f"| {' | '.join(head)} |".replace("  ", " "), "|---" * len(head) + "|"]
    return lines + [f"| {' | '.join(map(cell, row))} |" for row in rows]


def code(name: str) -> str:
    """A name as it is typed."""
    return f"`{name}`"


def columns(names: Sequence[str]) -> list[str]:
    """Names of columns, in order."""
    return [", ".join(map(code, names))]


def between(low: float | None, high: float | None) -> str:
    """A range."""
    if low is None:
        return ""
    return f"≥ {low:g}" if high is None else f"{low:g} … {high:g}"


def percent(fraction: float) -> str:
    """A share."""
    return f"{100 * fraction:.1f} %".replace("-", "−")


def decimals(text: str, digits: int = 2, scale: float = 1.0) -> str:
    """A number of a table in docs/data; a dash where there is none."""
    return f"{scale * float(text):.{digits}f}".replace("-", "−") if text else "–"


def sentence(text: str) -> str:
    """The first sentence of a text."""
    return re.split(r"(?<=\.)\s", " ".join(text.split()), maxsplit=1)[0].replace("``", "`")
