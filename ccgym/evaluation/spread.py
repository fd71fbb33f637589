"""Mean and standard deviation of a quantity over several runs."""

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
    """Sample standard deviation (n − 1); None for a single run, or if all runs have the same packets."""
    low: float
    high: float
    count: int
    """Number of runs with a value."""

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Spread | None:
        """Return the spread of the finite values; None if there are none."""
        known = [value for value in values if value is not None and math.isfinite(value)]
        if not known:
            return None
        std = statistics.stdev(known) if len(known) > 1 else None
        return cls(statistics.fmean(known), std, min(known), max(known), len(known))
