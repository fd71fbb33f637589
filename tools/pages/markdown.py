"""Functions that return pieces of Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return a Markdown table."""
    lines = [f"| {' | '.join(head)} |".replace("  ", " "), "|---" * len(head) + "|"]
    cells = ([str(cell).replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows)
    return lines + [f"| {' | '.join(row)} |" for row in cells]


def code(name: str) -> str:
    """Return a name as code."""
    return f"`{name}`"


def between(low: float | None, high: float | None) -> str:
    """Return a range as text."""
    if low is None:
        return ""
    return f"≥ {low:,.10g}" if high is None else f"{low:,.10g} … {high:,.10g}"


def percent(fraction: float) -> str:
    """Return a fraction in percent."""
    return f"{100 * fraction:.1f} %".replace("-", "−")


def signed(fraction: float, digits: int = 0) -> str:
    """Return a deviation in percent, with its sign."""
    return f"{100 * fraction:+.{digits}f} %".replace("-", "−")


def decimals(text: str, digits: int = 2, scale: float = 1.0) -> str:
    """Return a number of a table in docs/data; a dash if it is missing."""
    return f"{scale * float(text):.{digits}f}".replace("-", "−") if text else "–"


def sentence(text: str) -> str:
    """Return the first sentence of a text."""
    return re.split(r"(?<=\.)\s", " ".join(text.split()), maxsplit=1)[0].replace("``", "`")


def uncapitalized(text: str) -> str:
    """Return a text for use after a colon, in lower case; abbreviations and names of people keep their capital."""
    return text if re.match(r"[A-Z][A-Z0-9]|\w+'s ", text) else text[:1].lower() + text[1:]
