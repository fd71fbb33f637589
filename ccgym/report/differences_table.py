"""Better, worse or undecided: the table of differences between schemes, pair by pair."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ccgym.evaluation.differences import Difference, PairVerdict
from ccgym.evaluation.results_file import RESULTS_FILE
from ccgym.report.table import Cell, Column, Row, Table, Tone, counted

MOST_ON_SCREEN: Final = 10
"""Max pairs that a terminal shows: all pairs of five schemes. For more, it shows only how many are undecided."""

TONES: Final[dict[PairVerdict, Tone]] = {"better": "good", "worse": "bad", "equal": "muted", "undecided": "unknown"}

EXPLANATION: Final = (
    "Mean of the first scheme minus mean of the second, with the 95 % bootstrap interval of this difference. The first "
    "is better or worse if the interval does not contain zero. The number of further runs of each scheme that would "
    "decide is estimated from the widths of the intervals, if the difference stays the same."
)


QUANTITIES: Final = (
    Column("throughput_mbps", "throughput", "Mbit/s"),
    Column("delay_p95_ms", "95th %-ile\ndelay", "ms"),
    Column("loss", "loss", "%"),
)
"""Quantities that evaluations compare."""


def differences_table(
    found: Iterable[Difference], labels: Mapping[str, str], quantities: Sequence[Column] = QUANTITIES
) -> Table:
    """Return a row for each pair of schemes and a column for each quantity.

    Args:
        found: The differences.
        labels: Names of the schemes by key.
        quantities: The columns; percentages are fractions.
    """
    by_pair: dict[tuple[str, str], dict[str, Difference]] = {}
    for one in found:
        by_pair.setdefault((one.first, one.second), {})[one.quantity] = one
    columns = [Column("pair", "difference", align="left")]
    columns += [replace(one, short=f"{one.label} {one.unit}") for one in quantities]
    rows = [
        Row(
            {
                "pair": f"{labels.get(first, first)}\n− {labels.get(second, second)}",
                **{one.name: _cell(own[one.name], one.unit) for one in quantities if one.name in own},
            }
        )
        for (first, second), own in by_pair.items()
    ]
    return Table(columns, rows, kind="stack")


def _cell(one: Difference, unit: str) -> Cell:
    scale = 100 if unit == "%" else 1
    text = f"{one.mean * scale:+.2f}"
    if one.low is not None and one.high is not None:
        text += f" ({one.low * scale:+.2f} to {one.high * scale:+.2f})"
    text = text.replace("-", "−")
    return Cell(f"{text}\n{verdict_text(one)}", TONES[one.verdict])


def verdict_text(one: Difference) -> str:
    """Return ``better`` or, for example, ``undecided: about 7 more runs``."""
    if one.verdict != "undecided":
        return one.verdict
    if one.low is None:
        return "undecided: one run each is not enough"
    more = "over 10,000 more runs" if one.more_runs is None else f"about {counted(one.more_runs, 'more run')}"
    return f"undecided: {more}"


def undecided_text(found: Sequence[Difference]) -> str:
    """Return a line with the number of decided pairs, for tables that are too long for a screen."""
    undecided = sum(one.verdict == "undecided" for one in found)
    decided = f"{len(found) - undecided} of {len(found)} decided"
    return f"differences between schemes: {decided}; all are in {RESULTS_FILE}"
