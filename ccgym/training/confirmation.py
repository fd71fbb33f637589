"""Confirming a policy on fresh draws: paths that neither training nor the choice of the best model has seen."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from ccgym.training.config import TrainConfig
from ccgym.training.environments import Environments
from ccgym.training.evaluation import EvaluationResult, evaluate, measure_schemes
from ccgym.training.exportable import Exportable, exportable
from ccgym.training.saved_model import load_model
from ccgym.training.streams import stream_seed

CONFIRMATION_EPISODES: Final = 256
"""How many fresh draws there are."""

Key = TypeVar("Key", bound=Hashable)


def confirmation_seed(config: TrainConfig) -> int:
    """The seed of the fresh draws: another stream than that of the held-out ones."""
    return stream_seed(config.evaluation.seed, "confirmation")


def confirm(
    config: TrainConfig, runs: Mapping[Key, Path], episodes: int = CONFIRMATION_EPISODES
) -> tuple[dict[str, EvaluationResult], dict[Key, EvaluationResult]]:
    """Measure the baselines, and the best model of each run, on the same fresh draws.

    Args:
        config: Agent, environment, baselines and seed of the draws.
        runs: Run directories by a name of the caller's.
        episodes: How many draws.

    Returns:
        The baselines' results by scheme, and the models' by the caller's name.
    """
    wanted = config.evaluation.model_copy(update={"episodes": episodes})
    environments = Environments(config.model_copy(update={"evaluation": wanted}))
    draws, per_decision = confirmation_seed(config), wanted.per_decision
    schemes = measure_schemes(environments, wanted.baselines, draws, episodes, per_decision=per_decision)
    found = {}
    for name, place in runs.items():
        env = environments.evaluation()
        policy = _AsExported(exportable(load_model(place, "best")))
        found[name] = evaluate(env, policy, draws, episodes, per_decision=per_decision)
        env.close()
    return schemes, found


class _AsExported:
    """Decides as the exported policy will: evaluated exactly, normalization included."""

    def __init__(self, policy: Exportable) -> None:
        self._policy = policy
        self._state: npt.NDArray[np.float32] | None = None

    def __call__(self, observations: Any, starts: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
        """Actions for these observations. Every environment runs one episode: none begins with an old state."""
        answers, self._state = self._policy.decide(observations, self._state)
        return answers if self._policy.bounds is not None else answers.argmax(axis=1)
