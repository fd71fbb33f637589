"""Bootstrap confidence intervals of means, differences and rankings, over paths and runs.

A scheme's mean score is over a sample of paths and runs. The bootstrap estimates its variation with other samples.
Thousands of times, it draws the same number of paths with replacement, and as many runs for each path.
All schemes get the same paths in a draw, since a hard path is hard for all schemes.
So the difference of two schemes has less variance than their separate intervals suggest.

If there are several kinds of paths, each kind is a *stratum*: paths are drawn within it, and all strata have equal
weight. The center of a stratum is the mean, or the interquartile mean: the mean without the lowest and the highest
quarter. A few extreme paths do not change it (Agarwal et al., "Deep Reinforcement Learning at the Edge of the
Statistical Precipice", NeurIPS 2021).

For the few runs of one path, plain bootstrap intervals are too narrow: they use the deviations of a sample from its
own mean, and the normal quantile instead of Student's. :func:`resampled_means` and :func:`stretched` correct both
(Hesterberg, "What Teachers Should Know About the Bootstrap", 2015).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

Center: TypeAlias = Literal["mean", "interquartile"]
"""The average over the paths of a stratum."""

RESAMPLES: Final = 2000
"""Number of draws."""
AT_ONCE: Final = 50
"""Draws per batch: a few megabytes."""
CONFIDENCE: Final = 0.95
"""Confidence level of the intervals."""


@dataclass(frozen=True)
class Interval:
    """A mean and its confidence interval."""

    mean: float
    """Mean, or interquartile mean, over paths of the means over runs."""
    low: float
    high: float
    """Upper end; ``low <= mean <= high``."""

    def columns(self, name: str) -> dict[str, float]:
        """Return the three numbers as columns of a table: ``score``, ``score_low``, ``score_high``."""
        return {name: self.mean, f"{name}_low": self.low, f"{name}_high": self.high}


@dataclass(frozen=True)
class Resampled:
    """Bootstrap statistics of the schemes on a group of paths, in the order of the schemes."""

    scores: tuple[Interval, ...]
    first: tuple[float, ...]
    """Fraction of the draws in which a scheme had the best mean; 0 for schemes that do not compete."""
    behind: tuple[Interval, ...]
    """Mean score of each scheme minus the best competitor's (positive: ahead); zero for the best competitor itself."""


@dataclass(frozen=True)
class Ranked:
    """A scheme in a ranking."""

    scheme: str
    label: str
    reference: bool
    """Whether the scheme has the path's parameters, and so no rank."""
    rank: int | None
    """Rank from 1; None for references."""
    score: Interval
    """Mean score over the paths, with its interval."""
    behind: Interval
    """Score minus the best competitor's score, with its interval: completely below zero means worse."""
    first: float
    """Fraction of the resamples in which the scheme was first."""

    def columns(self, score: str) -> dict[str, Any]:
        """Return the result as columns of a table; ``score`` is the name of the score."""
        own = {"rank": self.rank, "scheme": self.scheme, "label": self.label}
        return {**own, **self.score.columns(score), **self.behind.columns("behind"), "first": self.first}


def ranked(resampled: Resampled, schemes: Sequence[tuple[str, str, bool]]) -> list[Ranked]:
    """Return the schemes from best to worst, references included by their scores.

    Args:
        resampled: Result of :func:`bootstrap`.
        schemes: Key, label, and whether it is a reference, in the order of the scores.
    """
    order = sorted(range(len(schemes)), key=lambda place: -resampled.scores[place].mean)
    ranks = iter(range(1, len(order) + 1))
    return [
        Ranked(
            *schemes[place],
            rank=None if schemes[place][2] else next(ranks),
            score=resampled.scores[place],
            behind=resampled.behind[place],
            first=resampled.first[place],
        )
        for place in order
    ]


def bootstrap(
    scores: Sequence[Sequence[Sequence[float]]],
    competes: Sequence[bool],
    seed: int,
    name: str = "",
    resamples: int = RESAMPLES,
    *,
    center: Center = "mean",
    strata: Sequence[int] | None = None,
) -> Resampled:
    """Resample paths and runs.

    Args:
        scores: By path, by scheme: the scores of the runs; every scheme has at least one on every path.
        competes: Per scheme: whether it can be first.
        seed: Root of the random stream.
        name: Branch of the stream: name of the group.
        resamples: Number of draws.
        center: The average over the paths of a stratum.
        strata: By path: number of its stratum, from 0; None: all paths are in one stratum.

    Returns:
        The statistics; the same arguments give the same statistics.
    """
    paths, schemes = len(scores), len(competes)
    counts: npt.NDArray[np.int64] = np.array([[len(runs) for runs in by_scheme] for by_scheme in scores])
    padded = np.full((paths, schemes, int(counts.max())), np.nan)
    for row, by_scheme in enumerate(scores):
        for column, runs in enumerate(by_scheme):
            padded[row, column, : len(runs)] = runs
    kinds: npt.NDArray[np.int64] = np.zeros(paths, dtype=np.int64) if strata is None else np.asarray(strata)
    members = [np.flatnonzero(kinds == kind) for kind in np.unique(kinds)]
    by_path = np.nanmean(padded, axis=2)
    means = np.mean([centered(by_path[own], center) for own in members], axis=0)
    drawn = _draws(padded, counts, members, center, _generator(seed, name), resamples)
    able = np.flatnonzero(np.array(competes, dtype=bool))
    first = np.zeros(schemes)
    behind = [Interval(0.0, 0.0, 0.0)] * schemes
    if able.size:
        leaders = able[np.argmax(drawn[:, able], axis=1)]
        first = np.bincount(leaders, minlength=schemes) / resamples
        best = int(able[np.argmax(means[able])])
        behind = [interval(means[one] - means[best], drawn[:, one] - drawn[:, best]) for one in range(schemes)]
    return Resampled(
        scores=tuple(interval(means[one], drawn[:, one]) for one in range(schemes)),
        first=tuple(float(fraction) for fraction in first),
        behind=tuple(behind),
    )


def centered(values: FloatArray, center: Center) -> FloatArray:
    """Return the center over the paths, which are the second-to-last axis."""
    if center == "mean":
        return np.asarray(values.mean(axis=-2))
    cut = values.shape[-2] // 4
    ordered = np.sort(values, axis=-2)
    return np.asarray(ordered[..., cut : values.shape[-2] - cut, :].mean(axis=-2))


def _draws(
    padded: FloatArray,
    counts: npt.NDArray[np.int64],
    members: Sequence[npt.NDArray[np.int64]],
    center: Center,
    rng: np.random.Generator,
    resamples: int,
) -> FloatArray:
    """Return the scores of every draw, by draw and scheme; ``members`` are the paths of each stratum."""
    _, schemes, runs = padded.shape
    columns, places = np.arange(schemes)[:, None], np.arange(runs)
    filled = np.nan_to_num(padded)
    made = []
    for start in range(0, resamples, AT_ONCE):
        some = min(AT_ONCE, resamples - start)
        parts = []
        for own in members:
            rows = own[rng.integers(own.size, size=(some, own.size))]
            of_rows: npt.NDArray[np.int64] = counts[rows]
            # Draw as many runs as the scheme has on the path; unused places of the array are left out.
            picks = (rng.random((some, own.size, schemes, runs)) * of_rows[..., None]).astype(np.int64)
            values = filled[rows[:, :, None, None], columns, picks] * (places < of_rows[..., None])
            parts.append(centered(values.sum(axis=3) / of_rows, center))
        made.append(np.mean(parts, axis=0))
    return np.concatenate(made)


def resampled_means(values: Sequence[float], seed: int, name: str, resamples: int = RESAMPLES) -> FloatArray:
    """Return means of samples drawn with replacement; deviations are scaled to the sample's estimate of the variance.

    Args:
        values: At least two values.
        seed: Root of the random stream.
        name: Branch of the stream.
        resamples: Number of draws.
    """
    sample = np.asarray(values, dtype=np.float64)
    # Equal values have no deviation, not even a rounding error.
    mean = float(sample[0]) if (sample == sample[0]).all() else float(sample.mean())
    scaled = mean + (sample - mean) * np.sqrt(sample.size / (sample.size - 1))
    return np.asarray(scaled[_generator(seed, name).integers(sample.size, size=(resamples, sample.size))].mean(axis=1))


def stretched(mean: float, drawn: FloatArray, degrees: float) -> Interval:
    """Return the interval of resampled means, widened by the ratio of Student's quantile to the normal quantile.

    Args:
        mean: The mean of the sample.
        drawn: Resampled means.
        degrees: Degrees of freedom.
    """
    plain = interval(mean, drawn)
    factor = student_quantile(degrees) / student_quantile(np.inf)
    return Interval(mean, mean - (mean - plain.low) * factor, mean + (plain.high - mean) * factor)


def student_quantile(degrees: float) -> float:
    """Return the two-sided quantile of Student's distribution for :data:`CONFIDENCE`; its error is at most 0.2 %.

    Args:
        degrees: Degrees of freedom, at least 1; infinity is the normal distribution.
    """
    tail = (1 + CONFIDENCE) / 2
    if degrees < 3:  # exact at 1 and 2; between them, and up to 3, a power law
        low = int(degrees)
        ends = [_few_degrees(low, tail), _few_degrees(low + 1, tail)]
        share = np.log(degrees / low) / np.log((low + 1) / low)
        return float(ends[0] * (ends[1] / ends[0]) ** share)
    z = NormalDist().inv_cdf(tail)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )  # Abramowitz and Stegun, 26.7.5
    return float(sum(term / degrees**power for power, term in enumerate(terms)))


def _few_degrees(degrees: int, tail: float) -> float:
    if degrees == 1:
        return float(np.tan(np.pi * (tail - 0.5)))
    if degrees == 2:
        return float((2 * tail - 1) * np.sqrt(2 / (1 - (2 * tail - 1) ** 2)))
    return student_quantile(3.0)


def interval(mean: float, drawn: FloatArray) -> Interval:
    """Return a mean with the percentile interval of the draws."""
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail])
    # With few paths and a skewed sample, both percentiles may be on one side of the mean.
    return Interval(float(mean), float(min(low, mean)), float(max(high, mean)))


def _generator(seed: int, name: str) -> np.random.Generator:
    digest = hashlib.sha256(f"ccgym ranking\n{seed}\n{name}".encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "big")))
