"""Games between schemes on a path, and absolute ratings of each scheme on it.

The games are ccBench's (Abbasloo, "Internet Congestion Control Benchmarking", arXiv 2307.10054; program
Soheil-ab/ccBench @4481376, ``league-piecewise.py`` and ``league-piecewise-2flows.py``). Its scores are relative: the
winners depend on the participants. As published, throughput is first rounded to whole Mbit/s and delay to whole ms: at
12 Mbit/s a step of 8 % in the throughput and 17 % in its square, with a margin of 10 %. Both ways are here.

A *rating* is absolute: the base-2 logarithm of the fraction of the path's optimum that a scheme reaches. 0 is the
optimum, −1 is half.
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
"""Schemes within this fraction of the best win, too."""


def whole(values: Floats) -> Floats:
    """Return the values rounded to whole numbers, halves up, as in Python 2 for positive numbers."""
    return np.floor(values + 0.5)


def power_winners(throughput: Floats, rtt: Floats, *, rounded: bool) -> Bools:
    """Return the winners of games with one flow: throughput² / round-trip time within the margin of the best.

    Args:
        throughput: Mbit/s; the last axis is the schemes.
        rtt: Mean one-way delay plus the delay of the way back, ms; NaN if nothing arrived, which never wins.
        rounded: Whether to round first, as published.
    """
    if rounded:
        throughput, rtt = whole(throughput), whole(rtt)
    known = np.isfinite(rtt)
    score = np.where(known, throughput**2 / np.where(known, rtt, 1.0), 0.0)
    return np.asarray(known & (score >= (1 - MARGIN) * score.max(axis=-1, keepdims=True)))


def fair_share_winners(throughput: Floats, fair: Floats, *, rounded: bool) -> Bools:
    """Return the winners of games with two flows: schemes with a throughput as near to the fair share as the nearest
    scheme, within the margin on both sides.

    Args:
        throughput: Throughput of the second flow, Mbit/s; the last axis is the schemes.
        fair: Half of the link, Mbit/s; its shape must broadcast with ``throughput``.
        rounded: Whether to round the throughput first, as published.
    """
    if rounded:
        throughput = whole(throughput)
    nearest = np.abs(fair - throughput).min(axis=-1, keepdims=True)
    enough = throughput >= (1 - MARGIN) * (fair - nearest)
    return np.asarray(enough & (throughput <= (1 + MARGIN) * (fair + nearest)))


def fair_share_rating(throughput: float, fair: float) -> float:
    """Return the rating of a share: 0 if it is fair, −1 for half or twice the fair share; at least the floor."""
    if throughput <= 0:
        return SCORE_FLOOR
    return max(SCORE_FLOOR, -abs(math.log2(throughput / fair)))


def improvement(ratings: Floats, strata: npt.NDArray[np.int64]) -> Floats:
    """Return the probability that one scheme is better than another on a path of these kinds.

    Every stratum has the same weight; equal ratings count half (Agarwal et al., NeurIPS 2021).

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
    """Return the mean over the worst ``fraction`` of paths, at least one, by scheme; ``ratings`` by path and scheme."""
    count = max(1, round(fraction * ratings.shape[0]))
    return np.asarray(np.sort(ratings, axis=0)[:count].mean(axis=0))
