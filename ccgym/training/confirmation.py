"""Confirming a policy on fresh draws: paths that neither training nor the choice of the best model has seen."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from ccgym.evaluation.observer import Observer
from ccgym.training.config import TrainConfig
from ccgym.training.environments import Environments
from ccgym.training.evaluation import EvaluationResult, evaluate, measure_scheme
from ccgym.training.exportable import Exportable, exportable
from ccgym.training.saved_model import load_model
from ccgym.training.streams import stream_seed

CONFIRMATION_EPISODES: Final = 256
"""How many fresh draws there are."""
AT_ONCE: Final = 16
"""Draws side by side. Environments wait for the one with the most decisions, so more of them waste more."""
MEASURING: Final = "measuring"
"""The stage of :func:`confirm`, for observers: a step is a draw."""

Key = TypeVar("Key", bound=Hashable)


def confirmation_seed(config: TrainConfig) -> int:
    """The seed of the fresh draws: another stream than that of the held-out ones."""
    return stream_seed(config.evaluation.seed, "confirmation")


def confirm(
    config: TrainConfig,
    runs: Mapping[Key, Path],
    episodes: int = CONFIRMATION_EPISODES,
    observer: Observer | None = None,
) -> tuple[dict[str, EvaluationResult], dict[Key, EvaluationResult]]:
    """Measure the baselines, and the best model of each run, on the same fresh draws.

    Args:
        config: Agent, environment, baselines and seed of the draws.
        runs: Run directories by a name of the caller's.
        episodes: How many draws.
        observer: Told how far it is.

    Returns:
        The baselines' results by scheme, and the models' by the caller's name.
    """
    environments, wanted = Environments(config), config.evaluation
    draws = confirmation_seed(config)
    if observer is not None:
        observer.begin(MEASURING, episodes * (len(wanted.baselines) + len(runs)))

    def told(name: str) -> Callable[[int], None]:
        def done(count: int) -> None:
            if observer is not None:
                observer.advance(MEASURING, count, name)

        return done

    schemes = {
        scheme: measure_scheme(
            environments.baseline(scheme, AT_ONCE), draws, episodes,
            per_decision=wanted.per_decision, done=told(scheme),
        )
        for scheme in wanted.baselines
    }  # fmt: skip
    found = {}
    for name, place in runs.items():
        env, policy = environments.evaluation(AT_ONCE), _AsExported(exportable(load_model(place, "best")))
        found[name] = evaluate(env, policy, draws, episodes, per_decision=wanted.per_decision, done=told(place.name))
        env.close()
    return schemes, found


class _AsExported:
    """Decides as the exported policy will: evaluated exactly, normalization included."""

    def __init__(self, policy: Exportable) -> None:
        self._policy = policy
        self._state: npt.NDArray[np.float32] | None = None

    def __call__(self, observations: Any, starts: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
        """Actions for these observations; where all episodes begin, without the state of those before."""
        if starts.all():
            self._state = None
        answers, self._state = self._policy.decide(observations, self._state)
        return answers if self._policy.bounds is not None else answers.argmax(axis=1)
