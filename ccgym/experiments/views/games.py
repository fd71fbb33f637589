"""Games between schemes on a path, and how good each scheme is by itself there.

The games are those of ccBench (Abbasloo, "Internet Congestion Control Benchmarking", arXiv 2307.10054; program
Soheil-ab/ccBench @4481376, ``league-piecewise.py`` and ``league-piecewise-2flows.py``). Its scores are relative: who
wins depends on who takes part. As published, throughput is rounded to whole Mbit/s and delay to whole ms first; at
12 Mbit/s that is a step of 8 % in the throughput and 17 % in its square, with a margin of 10 %. Both ways are here.

A *rating* is absolute: the logarithm to base 2 of how near a scheme is to what the path allows. 0 is all of it, −1
half.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from ccgym.experiments.views.score import SCORE_FLOOR

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

MARGIN: Final = 0.1
"""Who is within this fraction of the best wins, too."""


def whole(values: Floats) -> Floats:
    """Rounded to whole numbers, halves up, as Python 2 did with positive numbers."""
    return np.floor(values + 0.5)


def power_winners(throughput: Floats, rtt: Floats, *, rounded: bool) -> Bools:
    """Who wins the games of one flow: throughput² / round-trip time within the margin of the best.

    Args:
        throughput: Mbit/s; the last axis is the schemes.
        rtt: Mean one-way delay and the way back, ms; NaN where nothing arrived, which never wins.
        rounded: Whether to round first, as published.
    """
    if rounded:
        throughput, rtt = whole(throughput), whole(rtt)
    known = np.isfinite(rtt)
    score = np.where(known, throughput**2 / np.where(known, rtt, 1.0), 0.0)
    return np.asarray(known & (score >= (1 - MARGIN) * score.max(axis=-1, keepdims=True)))


def fair_share_winners(throughput: Floats, fair: Floats, *, rounded: bool) -> Bools:
    """Who wins the games of two flows: whose throughput is as near to the fair share as that of the nearest, within
    the margin on either side.

    Args:
        throughput: Of the newcomer, Mbit/s; the last axis is the schemes.
        fair: Half of the link, Mbit/s; of a shape that goes with ``throughput``.
        rounded: Whether to round the throughput first, as published.
    """
    if rounded:
        throughput = whole(throughput)
    nearest = np.abs(fair - throughput).min(axis=-1, keepdims=True)
    enough = throughput >= (1 - MARGIN) * (fair - nearest)
    return np.asarray(enough & (throughput <= (1 + MARGIN) * (fair + nearest)))


def fair_share_rating(throughput: float, fair: float) -> float:
    """How near to the fair share: −1 for half of it as well as for twice of it, and no less than the floor."""
    if throughput <= 0:
        return SCORE_FLOOR
    return max(SCORE_FLOOR, -abs(math.log2(throughput / fair)))


def improvement(ratings: Floats, strata: npt.NDArray[np.int64]) -> Floats:
    """The probability that one scheme is better than another on a path of these kinds.

    Every stratum counts the same; equal ratings count half (Agarwal et al., NeurIPS 2021).

    Args:
        ratings: By path, run and scheme.
        strata: By path: its stratum.

    Returns:
        By scheme (better) and scheme (than this one).
    """
    schemes = ratings.shape[-1]
    found = np.empty((schemes, schemes))
    kinds = np.unique(strata)
    for one in range(schemes):
        own, others = ratings[:, :, None, one, None], ratings[:, None, :, :]
        better = ((own > others) + 0.5 * (own == others)).mean(axis=(1, 2))
        found[one] = np.mean([better[strata == kind].mean(axis=0) for kind in kinds], axis=0)
    return found


def worst(ratings: Floats, fraction: float = 0.1) -> Floats:
    """Mean over the worst tenth of the paths, at least one, by scheme; ``ratings`` by path and scheme."""
    count = max(1, round(fraction * ratings.shape[0]))
    return np.asarray(np.sort(ratings, axis=0)[:count].mean(axis=0))
