"""A quantity over several runs: its mean and how much it varies."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """A quantity over runs."""

    mean: float
    std: float | None
    """Sample standard deviation (n − 1); None where runs cannot show one: a single run, or all of the same packets."""
    low: float
    high: float
    count: int
    """Runs that have a number."""

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Spread | None:
        """Over the finite values; None if there are none."""
        known = [value for value in values if value is not None and math.isfinite(value)]
        if not known:
            return None
        std = statistics.stdev(known) if len(known) > 1 else None
        return cls(statistics.fmean(known), std, min(known), max(known), len(known))
