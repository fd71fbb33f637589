"""Confidence of a ranking: bootstrap intervals over paths and runs.

A scheme's mean score is over a sample of paths and runs. The bootstrap estimates how it would vary with other samples:
it draws as many paths with replacement, and for each of them as many runs with replacement, thousands of times.
All schemes get the same paths in a draw, since a hard path is hard for all of
them: differences between schemes are surer than their intervals look.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

RESAMPLES: Final = 2000
"""Draws."""
AT_ONCE: Final = 50
"""Draws per batch: a few megabytes."""
CONFIDENCE: Final = 0.95
"""Confidence level of the intervals."""


@dataclass(frozen=True)
class Interval:
    """A mean and its confidence interval."""

    mean: float
    """Over paths of the means over runs."""
    low: float
    high: float
    """Upper end; ``low <= mean <= high``."""


@dataclass(frozen=True)
class Resampled:
    """Bootstrap statistics of the schemes on a group of paths, in their order."""

    scores: tuple[Interval, ...]
    first: tuple[float, ...]
    """Fraction of the draws in which a scheme had the best mean; 0 for those that do not compete."""
    behind: tuple[Interval, ...]
    """How far behind the best competitor, by mean score, each is (positive: ahead); zero for that one itself."""


def bootstrap(
    scores: Sequence[Sequence[Sequence[float]]],
    competes: Sequence[bool],
    seed: int,
    name: str = "",
    resamples: int = RESAMPLES,
) -> Resampled:
    """Resample paths and runs.

    Args:
        scores: By path, by scheme: the scores of the runs; every scheme has at least one on every path.
        competes: Which schemes can be first.
        seed: Root of the random stream.
        name: Branch of the stream: what the group is called.
        resamples: Draws.

    Returns:
        The same for the same arguments.
    """
    paths, schemes = len(scores), len(competes)
    counts: npt.NDArray[np.int64] = np.array([[len(runs) for runs in by_scheme] for by_scheme in scores])
    padded = np.full((paths, schemes, int(counts.max())), np.nan)
    for row, by_scheme in enumerate(scores):
        for column, runs in enumerate(by_scheme):
            padded[row, column, : len(runs)] = runs
    means = np.nanmean(padded, axis=2).mean(axis=0)
    drawn = _draws(padded, counts, _generator(seed, name), resamples)
    able = np.flatnonzero(np.array(competes, dtype=bool))
    first = np.zeros(schemes)
    behind = [Interval(0.0, 0.0, 0.0)] * schemes
    if able.size:
        leaders = able[np.argmax(drawn[:, able], axis=1)]
        first = np.bincount(leaders, minlength=schemes) / resamples
        best = int(able[np.argmax(means[able])])
        behind = [_interval(means[one] - means[best], drawn[:, one] - drawn[:, best]) for one in range(schemes)]
    return Resampled(
        scores=tuple(_interval(means[one], drawn[:, one]) for one in range(schemes)),
        first=tuple(float(fraction) for fraction in first),
        behind=tuple(behind),
    )


def _draws(padded: FloatArray, counts: npt.NDArray[np.int64], rng: np.random.Generator, resamples: int) -> FloatArray:
    """Mean scores in every draw, by draw and scheme."""
    paths, schemes, runs = padded.shape
    columns, places = np.arange(schemes)[:, None], np.arange(runs)
    filled = np.nan_to_num(padded)
    made = []
    for start in range(0, resamples, AT_ONCE):
        some = min(AT_ONCE, resamples - start)
        rows = rng.integers(paths, size=(some, paths))
        of_rows: npt.NDArray[np.int64] = counts[rows]
        # As many runs as there are; where there are fewer than elsewhere, the places beyond are left out.
        picks = (rng.random((some, paths, schemes, runs)) * of_rows[..., None]).astype(np.int64)
        values = filled[rows[:, :, None, None], columns, picks] * (places < of_rows[..., None])
        made.append((values.sum(axis=3) / of_rows).mean(axis=1))
    return np.concatenate(made)


def _interval(mean: float, drawn: FloatArray) -> Interval:
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail])
    # With few paths and a skewed sample the percentiles may lie on one side of the mean.
    return Interval(float(mean), float(min(low, mean)), float(max(high, mean)))


def _generator(seed: int, name: str) -> np.random.Generator:
    digest = hashlib.sha256(f"ccgym ranking\n{seed}\n{name}".encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "big")))
