"""Compare two schemes: the difference of their means with its interval, and the number of further runs to decide.

A scheme is *better* or *worse* than another one if the whole 95 % interval of the difference is on one side of zero.
Otherwise the two are *undecided*. The number of further runs is an estimate: it assumes that the difference stays
equal, and that the width of the interval shrinks with the square root of the number of runs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from math import inf, sqrt
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from ccgym.evaluation.bootstrap import FloatArray, Interval, resampled_means, stretched, student_quantile

PairVerdict: TypeAlias = Literal["better", "worse", "equal", "undecided"]
"""Verdict about the first of two schemes. ``equal``: all runs of both schemes gave the same number."""

Direction: TypeAlias = Literal["higher", "lower"]
"""Which values of a quantity are better."""

MOST_RUNS: Final = 10_000
"""Maximum number of further runs that is reported."""


@dataclass(frozen=True)
class Difference:
    """Two schemes compared in one quantity."""

    quantity: str
    first: str
    """Key of the first scheme."""
    second: str
    """Key of the second scheme."""
    runs: tuple[int, int]
    """Number of compared runs of each scheme."""
    mean: float
    """Mean of the first scheme minus mean of the second."""
    low: float | None
    """Lower end of the interval; None if there are too few runs for an interval."""
    high: float | None
    verdict: PairVerdict
    """Verdict about the first scheme."""
    more_runs: int | None
    """For an undecided pair: approximate number of further runs of each scheme to decide; None if over 10,000 runs
    would be needed, or if there is one run each."""

    def row(self) -> dict[str, Any]:
        """Return the difference as a row of a table."""
        data = asdict(self)
        data["runs_first"], data["runs_second"] = data.pop("runs")
        return data


def differences(
    quantity: str, better: Direction, values: Mapping[str, Mapping[int, float]], *, paired: bool, seed: int = 1
) -> list[Difference]:
    """Compare all pairs of schemes, in the order of the schemes.

    Args:
        quantity: Name of the compared quantity.
        better: Which values are better.
        values: Values by scheme, by run number.
        paired: Whether runs with equal numbers had the same conditions. If so, only common run numbers are compared.
        seed: Root of the random streams.
    """
    known = {scheme: runs for scheme, runs in values.items() if runs}
    drawn = {
        scheme: resampled_means(list(runs.values()), seed, f"{quantity} {scheme}")
        for scheme, runs in known.items()
        if len(runs) > 1 and not paired
    }
    found = []
    for first, second in combinations(known, 2):
        ours, theirs = known[first], known[second]
        if paired:
            shared = [number for number in ours if number in theirs]
            if not shared:
                continue
            between = [ours[number] - theirs[number] for number in shared]
            counts, mean = (len(shared), len(shared)), float(np.mean(between))
            degrees: float = len(shared) - 1
            name = f"{quantity} {first} {second}"
            means = resampled_means(between, seed, name) if len(shared) > 1 else None
        else:
            counts = (len(ours), len(theirs))
            mean = float(np.mean([*ours.values()]) - np.mean([*theirs.values()]))
            degrees = _welch(list(ours.values()), list(theirs.values()))
            means = drawn[first] - drawn[second] if first in drawn and second in drawn else None
        found.append(_difference(quantity, better, (first, second), counts, mean, means, degrees))
    return found


def _difference(
    quantity: str,
    better: Direction,
    pair: tuple[str, str],
    runs: tuple[int, int],
    mean: float,
    means: FloatArray | None,
    degrees: float,
) -> Difference:
    interval = None if means is None else stretched(mean, means, degrees)
    verdict: PairVerdict = "undecided"
    if interval is not None and (interval.low > 0 or interval.high < 0):
        verdict = "better" if (mean > 0) == (better == "higher") else "worse"
    elif interval is not None and interval.low == interval.high == 0:
        verdict = "equal"
    more = _more_runs(interval, min(runs), degrees) if verdict == "undecided" else None
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    return Difference(quantity, *pair, runs, mean, low, high, verdict, more)


def _welch(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the degrees of freedom of a difference of two means (Welch, Satterthwaite); infinite without variance."""
    parts = [(float(np.var(one, ddof=1)) / len(one), len(one) - 1) for one in (first, second) if len(one) > 1]
    below = sum(part**2 / free for part, free in parts)
    return sum(part for part, _ in parts) ** 2 / below if below > 0 else inf


def _more_runs(interval: Interval | None, runs: int, degrees: float) -> int | None:
    """Return the number of further runs that would move the nearer end of the interval to zero."""
    if interval is None:  # one run does not show how much runs differ
        return None
    arm = interval.mean - interval.low if interval.mean > 0 else interval.high - interval.mean
    reach = abs(interval.mean) * student_quantile(degrees) / arm if arm > 0 else inf

    def decides(more: int) -> bool:
        grown = (runs + more) / runs
        return student_quantile(degrees * grown) / sqrt(grown) < reach

    possible = range(1, MOST_RUNS - runs + 1)
    place = bisect_left(possible, True, key=decides)  # the more runs, the shorter the interval
    return possible[place] if place < len(possible) else None


def rows(found: Iterable[Difference], **more: Any) -> list[dict[str, Any]]:
    """Return differences as rows of a table, after further columns ``more``."""
    return [{**more, **one.row()} for one in found]
