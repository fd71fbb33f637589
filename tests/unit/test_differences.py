"""Better, worse or undecided: intervals of differences between schemes, and how many more runs would decide."""

from __future__ import annotations

import numpy as np
import pytest

from ccgym.evaluation.bootstrap import student_quantile
from ccgym.evaluation.differences import Difference, differences


def numbered(values: list[float]) -> dict[int, float]:
    return dict(enumerate(values, start=1))


def compare(
    first: list[float], second: list[float], *, paired: bool = False, better: str = "higher", seed: int = 1
) -> Difference:
    values = {"a": numbered(first), "b": numbered(second)}
    (found,) = differences("throughput", better, values, paired=paired, seed=seed)  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize(
    ("degrees", "value"),
    [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (9, 2.2622), (30, 2.0423), (np.inf, 1.95996)],
)
def test_quantiles_of_student(degrees: float, value: float) -> None:
    assert student_quantile(degrees) == pytest.approx(value, rel=2e-3)  # from any table of the distribution


def test_quantiles_of_student_fall() -> None:
    grid = [student_quantile(degrees) for degrees in np.linspace(1, 12, 200)]
    assert all(one > other for one, other in zip(grid, grid[1:]))


def test_published_runs_of_bbr_and_indigo() -> None:
    # Document 000: 72.7 against 74.3 Mbit/s, every run of one below every run of the other but two.
    bbr, indigo = [72.65, 72.95, 72.82, 72.97, 72.10], [73.85, 74.43, 72.9, 75.56, 74.85]
    found = compare(bbr, indigo)
    assert found.mean == pytest.approx(-1.62)
    assert found.verdict == "worse"
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.mean < found.high < 0
    assert compare(indigo, bbr).verdict == "better"
    assert compare(bbr, indigo, better="lower").verdict == "better"
    # Their loss: 3.43 against 7.95 %, which two runs of Indigo's make.
    loss = compare([3.17, 3.47, 3.39, 3.66, 3.48], [1.66, 4.68, 1.74, 17.81, 13.85], better="lower")
    assert loss.verdict == "undecided"
    assert loss.more_runs is not None
    assert 2 <= loss.more_runs <= 30


def test_more_runs_do_decide() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.normal(10, 1, 2000), rng.normal(10.5, 1, 2000)
    few = compare(list(first[:8]), list(second[:8]))
    assert few.verdict == "undecided"
    # The law of the width, with the mean and spread known: |d| = 0.5 needs about 2·(1.96/0.5)² = 31 runs.
    known = compare(list(10 + _spread(8)), list(10.5 + _spread(8)))
    assert known.more_runs is not None
    assert known.more_runs + 8 == pytest.approx(31, rel=0.25)
    assert compare(list(first[:400]), list(second[:400])).verdict == "worse"


def _spread(count: int) -> np.ndarray:
    """Numbers with a mean of 0 and a sample deviation of 1."""
    values = np.linspace(-1, 1, count)
    return values / values.std(ddof=1)


def test_pairs_see_what_independent_runs_hide() -> None:
    rng = np.random.default_rng(1)
    conditions = rng.normal(50, 20, 12)
    first, second = list(conditions + 1 + rng.normal(0, 0.3, 12)), list(conditions)
    assert compare(first, second).verdict == "undecided"
    assert compare(first, second, paired=True).verdict == "better"


def test_only_shared_runs_are_paired() -> None:
    values = {"a": {1: 1.0, 2: 2.0, 3: 3.0}, "b": {2: 1.0, 3: 2.1, 4: 9.0}, "c": {7: 1.0}, "d": {}}
    (found,) = differences("throughput", "higher", values, paired=True)
    assert (found.first, found.second, found.runs) == ("a", "b", (2, 2))
    assert found.mean == pytest.approx(0.95)


def test_runs_that_do_not_vary_decide() -> None:
    assert compare([5.0] * 3, [4.9] * 3).verdict == "better"
    assert compare([0.1 + 0.2] * 3, [0.1 + 0.2] * 3).verdict == "equal"
    same = compare([5.0, 6.0], [5.0, 6.0])
    assert (same.verdict, same.more_runs) == ("undecided", None)


def test_a_single_run_decides_nothing() -> None:
    found = compare([5.0], [1.0, 1.1])
    assert (found.verdict, found.low, found.high, found.more_runs) == ("undecided", None, None, None)


@pytest.mark.parametrize(
    ("runs", "paired"),
    [(3, False), (5, True), *(pytest.param(*one, marks=pytest.mark.long) for one in ((5, False), (10, True)))],
)
def test_intervals_cover_what_they_say(runs: int, paired: bool) -> None:
    rng = np.random.default_rng(runs)
    outside = 0
    for seed in range(400):
        found = compare(list(rng.normal(0, 1, runs)), list(rng.normal(0, 1, runs)), paired=paired, seed=seed)
        outside += found.verdict != "undecided"
    # 5 % should be outside; of 400 trials 7.5 % is more than two standard deviations of chance above that.
    assert outside / 400 <= 0.075
