"""Find collapsed runs: runs that are far slower than the other runs of the same scheme on the same path.

Published means hide them: in a report of 2019, four of the five runs of one scheme carried 56 to 64 Mbit/s and one
0.10. The rule is calibrated on the runs of two published reports (``tests/unit/data/published_runs.csv``): collapsed
runs there reached at most 14 % of the upper quartile of the scheme's runs, all other runs at least 45 %.

The median is unsuitable: if two of three runs collapsed, it is a collapsed run itself, without any deviation.
The upper quartile is valid if at least a quarter of the runs worked, and one very fast run does not change it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

MIN_RUNS: Final = 3
"""Minimum number of runs: with fewer runs, none can be identified as collapsed."""

FRACTION: Final = 0.25
"""A run collapsed if it is below this fraction of the upper quartile of all runs ..."""

GAP: Final = 2.0
"""... and if every other run is faster by at least this factor: runs spread over a range are no collapse."""


def collapsed(throughputs: Sequence[float]) -> list[int]:
    """Return the positions of the collapsed runs.

    Args:
        throughputs: Throughput of each run of a scheme under the same conditions, in any unit.
    """
    if len(throughputs) < MIN_RUNS:
        return []
    values = np.asarray(throughputs, dtype=np.float64)
    below = values < FRACTION * np.quantile(values, 0.75)
    if not below.any() or values[~below].min() < GAP * values[below].max():
        return []
    return [int(place) for place in np.flatnonzero(below)]
