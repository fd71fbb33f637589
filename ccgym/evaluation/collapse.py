"""Runs that collapsed: far slower than the other runs of the same scheme on the same path.

Published means hide them: of the five runs of one scheme in a report of 2019, four carried 56 to 64 Mbit/s and one
0.10. The rule is calibrated on the runs of two published reports (``tests/unit/data/published_runs.csv``): those that
collapsed there reached at most 14 % of the upper quartile of their siblings, all others at least 45 %.

The median would be no measure: where two of three runs collapsed, it is a collapsed run itself, and the deviation from
it is none. The upper quartile holds as long as a quarter of the runs worked, and one lucky run does not move it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

MIN_RUNS: Final = 3
"""Of fewer runs none can be called the odd one."""

FRACTION: Final = 0.25
"""A run collapsed if it is below this fraction of the upper quartile of all runs ..."""

GAP: Final = 2.0
"""... and if every run that did not is faster by at least this factor: runs that spread evenly are no collapse."""


def collapsed(throughputs: Sequence[float]) -> list[int]:
    """The positions of the runs that collapsed.

    Args:
        throughputs: Of each run of a scheme under the same conditions, in any unit.
    """
    if len(throughputs) < MIN_RUNS:
        return []
    values = np.asarray(throughputs, dtype=np.float64)
    below = values < FRACTION * np.quantile(values, 0.75)
    if not below.any() or values[~below].min() < GAP * values[below].max():
        return []
    return [int(place) for place in np.flatnonzero(below)]
