"""Compare two results: the numbers of each scheme in both, and whether they differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from ccgym.config.display import html_table
from ccgym.errors import ConfigError, shown
from ccgym.evaluation.differences import Difference, differences
from ccgym.evaluation.results import COMPARED, ResultSet
from ccgym.evaluation.run_record import RunRecord

Comparable: TypeAlias = ResultSet | RunRecord | Sequence[RunRecord]
"""Results of an evaluation; or one run, or several runs of the same flows with different seeds."""

_SIDES: Final = ("first", "second")
_UNITS: Final = {"throughput_mbps": "Mbit/s", "delay_p95_ms": "ms", "loss": "%"}


@dataclass(frozen=True)
class Comparison:
    """Result of :func:`compare`: one difference per scheme and quantity."""

    found: tuple[tuple[str, Difference], ...]
    """Scheme, and the difference *first minus second* with its interval and the verdict about the first."""

    def rows(self) -> list[dict[str, Any]]:
        """Return rows of a table: ``pandas.DataFrame(comparison.rows())``. Losses are fractions."""
        return [{"scheme": scheme, **one.row()} for scheme, one in self.found]

    def _cells(self) -> list[tuple[str, ...]]:
        def text(one: Difference) -> str:
            scale = 100 if one.quantity == "loss" else 1
            interval = (
                "" if one.low is None or one.high is None else f" ({scale * one.low:+.2f} to {scale * one.high:+.2f})"
            )
            return f"{scale * one.mean:+.2f}{interval} {_UNITS[one.quantity]}"

        return [
            (scheme, one.quantity, text(one), one.verdict, f"{one.runs[0]}, {one.runs[1]}")
            for scheme, one in self.found
        ]

    def __repr__(self) -> str:
        cells = self._cells()
        widths = [max(len(row[at]) for row in cells) for at in range(4)]
        lines = ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)) for row in cells]
        return "\n".join(["Comparison: first minus second, with the 95 % interval", *lines])

    def _repr_html_(self) -> str:
        head = ("scheme", "quantity", "first minus second (95 % interval)", "the first is", "runs of each")
        return html_table("Comparison", head, self._cells())


def compare(first: Comparable, second: Comparable, seed: int = 1) -> Comparison:
    """Compare two results: throughput, 95th percentile of the one-way delay and loss of each scheme that both have.

    Intervals are bootstrap intervals of the difference of two means of unpaired runs. With one run each there is no
    interval, and the verdict is ``undecided``.

    Args:
        first: Results of an evaluation (``ResultSet.load(directory)``), or one or several runs of :func:`simulate`.
        second: The results to compare with, in the same form.
        seed: Root of the bootstrap's random streams.

    Raises:
        ConfigError: The two results have no scheme in common.
    """
    sides = [_runs(first), _runs(second)]
    common = [scheme for scheme in sides[0] if scheme in sides[1]]
    if not common:
        raise ConfigError(
            "unknown-scheme",
            " and ".join(shown(", ".join(side)) for side in sides),
            expected="a scheme, or the same schemes as flows, in both",
            where="compare",
        )
    found = []
    for scheme in common:
        for quantity, better in COMPARED.items():
            values = {
                name: {
                    run: float(value)
                    for run, total in side[scheme].items()
                    if (value := getattr(total, quantity)) is not None
                }
                for name, side in zip(_SIDES, sides, strict=True)
            }
            found += [(scheme, one) for one in differences(quantity, better, values, paired=False, seed=seed)]
    return Comparison(tuple(found))


def _runs(given: Comparable) -> dict[str, dict[int, Any]]:
    """Return Pantheon's numbers of all flows together, by scheme and run number."""
    if isinstance(given, ResultSet):
        return {
            one.style.key: {cell.run: cell.record.total for cell in one.valid_runs}
            for one in given.schemes
            if one.valid_runs
        }
    runs: Any = [given] if isinstance(given, RunRecord) else given
    if not isinstance(runs, Sequence) or not all(isinstance(run, RunRecord) for run in runs):
        expected = "results of an evaluation (ResultSet), a RunRecord, or a list of them"
        raise ConfigError("wrong-type", shown(type(given).__name__), expected=expected, where="compare")
    by_scheme: dict[str, dict[int, Any]] = {}
    for run in runs:
        own = by_scheme.setdefault("+".join(flow.scheme for flow in run.flows), {})
        own[len(own) + 1] = run.total
    return by_scheme
