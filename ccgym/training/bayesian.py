"""Bayesian optimization: the largest value of a function that is costly and noisy, in few evaluations.

Some points are drawn at random. A Gaussian process is fitted to what they gave, and each further point is where its
upper confidence bound, mean + kappa × standard deviation, is largest (Srinivas et al., ICML 2010).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

CANDIDATES: Final = 4096
"""Points among which the bound's largest is looked for; half of them near the best point so far."""
NEARBY: Final = 0.1
"""Standard deviation of those near the best, on each axis."""


@dataclass(frozen=True, eq=False)
class Trial:
    """A point that was tried."""

    place: Floats
    """From 0 to 1 on each axis."""
    value: float
    guided: bool
    """Whether the Gaussian process chose it."""


def maximize(
    function: Callable[[Floats], float], axes: int, *, random: int, guided: int, kappa: float, seed: int
) -> list[Trial]:
    """Try ``random`` + ``guided`` points of the unit cube.

    Args:
        function: Its value at a point, a row of ``axes`` numbers from 0 to 1.
        axes: How many axes there are.
        random: Points drawn evenly, one or more.
        guided: Points chosen by the Gaussian process.
        kappa: Weight of the uncertainty; 0 only exploits.
        seed: Decides everything that is random.

    Returns:
        All trials in order; the same for the same seed and function.
    """
    rng = np.random.default_rng(seed)
    trials = [Trial(place, function(place), guided=False) for place in rng.random((random, axes))]
    for _ in range(guided):
        place = _most_promising(trials, kappa, rng)
        trials.append(Trial(place, function(place), guided=True))
    return trials


def best_of(trials: list[Trial]) -> Trial:
    """The trial of the largest value; of equal ones the first."""
    return max(trials, key=lambda trial: trial.value)


def _most_promising(trials: list[Trial], kappa: float, rng: np.random.Generator) -> Floats:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    places, values = np.array([trial.place for trial in trials]), np.array([trial.value for trial in trials])
    kernel = ConstantKernel(1.0, (0.1, 10.0)) * Matern(0.5, (0.05, 5.0), nu=2.5) + WhiteKernel(0.01, (1e-6, 1.0))
    process = GaussianProcessRegressor(
        kernel, normalize_y=True, n_restarts_optimizer=2, random_state=int(rng.integers(2**31))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a parameter at its bound is as good as one within
        process.fit(places, values)
    half = CANDIDATES // 2
    near = best_of(trials).place + NEARBY * rng.standard_normal((half, places.shape[1]))
    candidates = np.concatenate([rng.random((half, places.shape[1])), np.clip(near, 0.0, 1.0)])
    mean, deviation = process.predict(candidates, return_std=True)
    chosen: Floats = candidates[int(np.argmax(mean + kappa * deviation))]
    return chosen
