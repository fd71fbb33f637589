"""Bayesian optimization finds the largest value of functions that are known, and repeats itself."""

from __future__ import annotations

import numpy as np
import pytest

from ccgym.training.bayesian import Floats, best_of, maximize

TOP = np.array([0.8, 0.2, 0.5])


def hill(place: Floats) -> float:
    """At most 0, at ``TOP``."""
    return -float(((place - TOP) ** 2).sum())


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_top_of_a_hill_is_found(seed: int) -> None:
    trials = maximize(hill, 3, random=8, guided=10, kappa=0.5, seed=seed)
    assert [trial.guided for trial in trials] == [False] * 8 + [True] * 10
    best = best_of(trials)
    assert best.guided
    assert np.abs(best.place - TOP).max() < 0.05
    rng = np.random.default_rng(seed)
    assert best.value > max(hill(place) for place in rng.random((1000, 3))) / 2, "1000 random points do worse"


def test_it_looks_through_noise() -> None:
    noise = np.random.default_rng(7)
    trials = maximize(
        lambda place: hill(place) + 0.02 * noise.standard_normal(), 3, random=10, guided=15, kappa=1, seed=1
    )
    assert max(hill(trial.place) for trial in trials if trial.guided) > -0.02


def test_much_uncertainty_explores() -> None:
    """With a large kappa the guided points lie far from each other; with none they gather at the best one."""

    def spread(kappa: float) -> float:
        places = [trial.place for trial in maximize(hill, 3, random=5, guided=8, kappa=kappa, seed=1) if trial.guided]
        return float(np.std(places, axis=0).mean())

    assert spread(20.0) > 3 * spread(0.0)


def test_the_same_seed_gives_the_same_points() -> None:
    one, other, third = (maximize(hill, 3, random=4, guided=3, kappa=20, seed=seed) for seed in (5, 5, 6))
    assert [trial.place.tolist() for trial in one] == [trial.place.tolist() for trial in other]
    assert [trial.place.tolist() for trial in one] != [trial.place.tolist() for trial in third]
    assert all((trial.place >= 0).all() and (trial.place <= 1).all() for trial in one)


def test_a_flat_function_does_no_harm() -> None:
    trials = maximize(lambda place: 1.0, 2, random=3, guided=2, kappa=20, seed=1)
    assert best_of(trials) is trials[0]
