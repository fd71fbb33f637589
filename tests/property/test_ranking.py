"""Scores and rankings, whatever the numbers."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccgym.evaluation.bootstrap import Center, bootstrap
from ccgym.experiments.views.score import SCORE_FLOOR, MeanMetrics, dominates, pareto_optimal, score

UTILIZATIONS = st.floats(1e-6, 1.2)
RATIOS = st.floats(1.0, 1e6)
STANDINGS = st.builds(MeanMetrics, st.floats(0.0, 200.0), st.floats(1.0, 5000.0), st.floats(0.0, 1.0))


@st.composite
def score_tables(draw: st.DrawFn) -> list[list[list[float]]]:
    """Scores by path, scheme and run; runs may be missing here and there."""
    paths, schemes = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    runs = st.lists(st.floats(SCORE_FLOOR, 0.1), min_size=1, max_size=3)
    return [[draw(runs) for _ in range(schemes)] for _ in range(paths)]


@given(UTILIZATIONS, RATIOS)
def test_half_of_the_power_is_one_less(utilization: float, ratio: float) -> None:
    whole = score(utilization, ratio)
    assert SCORE_FLOOR <= whole <= math.log2(1.2)
    if whole > SCORE_FLOOR + 1:
        assert score(utilization / 2, ratio) == pytest.approx(whole - 1)
        assert score(utilization, 2 * ratio) == pytest.approx(whole - 1)


@given(UTILIZATIONS, RATIOS, st.floats(1.0, 10.0))
def test_more_is_never_worse(utilization: float, ratio: float, factor: float) -> None:
    assert score(utilization * factor, ratio) >= score(utilization, ratio)
    assert score(utilization, ratio * factor) <= score(utilization, ratio)


@given(STANDINGS, STANDINGS)
def test_nobody_dominates_whom_he_is_dominated_by(one: MeanMetrics, other: MeanMetrics) -> None:
    assert not (dominates(one, other) and dominates(other, one))
    assert not dominates(one, one)


@given(st.lists(st.none() | STANDINGS, min_size=1, max_size=6))
def test_those_without_numbers_are_dominated(standings: list[MeanMetrics | None]) -> None:
    for standing, free in zip(standings, pareto_optimal(standings), strict=True):
        assert free is False or standing is not None


@settings(max_examples=40)
@given(score_tables(), st.integers(0, 2**63 - 1))
def test_intervals_hold_their_mean_and_come_again(table: list[list[list[float]]], seed: int) -> None:
    competes = [place != 0 for place in range(len(table[0]))]
    found = bootstrap(table, competes, seed, "group", resamples=60)
    assert found == bootstrap(table, competes, seed, "group", resamples=60)
    for scheme, interval in enumerate(found.scores):
        assert interval.low <= interval.mean <= interval.high
        assert interval.mean == pytest.approx(statistics.fmean(statistics.fmean(row[scheme]) for row in table))
        values = [value for row in table for value in row[scheme]]
        assert min(values) - 1e-9 <= interval.low
        assert interval.high <= max(values) + 1e-9
    assert found.first[0] == 0.0
    assert sum(found.first) == pytest.approx(1.0 if any(competes) else 0.0)
    best = max((found.scores[place].mean for place in range(1, len(competes))), default=None)
    if best is not None:
        for scheme, behind in enumerate(found.behind):
            assert behind.mean == pytest.approx(found.scores[scheme].mean - best)


@settings(max_examples=40)
@given(score_tables(), st.integers(0, 2**63 - 1), st.sampled_from(["mean", "interquartile"]), st.data())
def test_strata_count_the_same(table: list[list[list[float]]], seed: int, center: Center, data: st.DataObject) -> None:
    strata = data.draw(st.lists(st.integers(0, 2), min_size=len(table), max_size=len(table)))
    competes = [True] * len(table[0])
    found = bootstrap(table, competes, seed, resamples=20, center=center, strata=strata)
    assert found == bootstrap(table, competes, seed, resamples=20, center=center, strata=strata)
    for scheme, interval in enumerate(found.scores):
        assert interval.low <= interval.mean <= interval.high
        parts = []
        for kind in set(strata):
            means = sorted(statistics.fmean(row[scheme]) for row, own in zip(table, strata, strict=True) if own == kind)
            cut = len(means) // 4 if center == "interquartile" else 0
            parts.append(statistics.fmean(means[cut : len(means) - cut]))
        assert interval.mean == pytest.approx(statistics.fmean(parts))
    if len(set(strata)) == 1 and center == "mean":
        assert found == bootstrap(table, competes, seed, resamples=20)
