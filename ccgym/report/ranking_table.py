"""Columns and rows of all rankings: rank, scheme, score with its interval, and how often a scheme was first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ccgym.evaluation.bootstrap import Interval, Ranked
from ccgym.report.table import Column, Row, number

score_text: Final = number(2)


def interval_text(interval: Interval) -> str:
    """Return an interval as text: ``[−0.45, −0.21]``."""
    return f"[{score_text(interval.low)}, {score_text(interval.high)}]"


NAMES: Final = (Column("rank", ""), Column("scheme", "scheme", align="left"))


def ranking_columns(score: str) -> tuple[Column, ...]:
    """Return the columns; ``score`` is the name of the score."""
    return (
        *NAMES,
        Column("score", score, format=score_text, better="max"),
        Column("interval", "95 %\ninterval", format=interval_text),
        Column("first", "first", format=lambda value: f"{100 * value:.0f} %"),
    )


def ranked_row(place: Ranked, values: Mapping[str, Any]) -> Row:
    """Return the row of a scheme, with further values; references have no rank, and are in italics."""
    own = {
        "rank": "" if place.rank is None else place.rank,
        "scheme": place.label,
        "score": place.score.mean,
        "interval": place.score,
        "first": None if place.reference else place.first,
    }
    return Row({**own, **values}, "reference" if place.reference else "")
