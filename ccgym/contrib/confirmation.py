"""Confirm a policy on fresh draws: paths that neither training nor the choice of the best model has used."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from ccgym.evaluation.observer import Observer
from ccgym.training.config import TrainConfig
from ccgym.training.environments import Environments
from ccgym.training.evaluation import Actor, EvaluationResult, evaluate, no_op_actor
from ccgym.training.model import load_model
from ccgym.training.streams import stream_seed
from ccgym.training.torch_policy import Exportable, exportable

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env import VecEnv

CONFIRMATION_EPISODES: Final = 256
"""Default number of fresh draws."""
AT_ONCE: Final = 16
"""Number of parallel draws. Environments wait for the one with the most decisions, so more draws waste more time."""
MEASURING: Final = "measuring"
"""The stage of :func:`confirm`, for observers: a step is a draw."""

Key = TypeVar("Key")


def as_exported(policy: Exportable) -> Actor:
    """Return an actor that decides as the exported policy: evaluated exactly, normalization included."""
    state: Any = None

    def act(observations: Any, starts: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
        nonlocal state
        answers, state = policy.decide(observations, None if starts.all() else state)
        return answers if policy.bounds is not None else answers.argmax(axis=1)

    return act


def confirmation_seed(config: TrainConfig) -> int:
    """Return the seed of the fresh draws: another random stream than for the held-out draws."""
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
        runs: Run directories, by a name that the caller chooses.
        episodes: Number of draws.
        observer: Receives the progress.

    Returns:
        The baselines' results by scheme, and the models' by the caller's name.
    """
    environments, wanted = Environments(config), config.evaluation
    if observer is not None:
        observer.begin(MEASURING, episodes * (len(wanted.baselines) + len(runs)))

    def measured(env: VecEnv, actor: Actor, name: str) -> EvaluationResult:
        def done(count: int) -> None:
            if observer is not None:
                observer.advance(MEASURING, count, name)

        draws = confirmation_seed(config)
        found = evaluate(env, actor, draws, episodes, per_decision=wanted.per_decision, done=done)
        env.close()
        return found

    schemes, models = {}, {}
    for scheme in wanted.baselines:
        env = environments.baseline(scheme, AT_ONCE)
        schemes[scheme] = measured(env, no_op_actor(env), scheme)
    for name, place in runs.items():
        trained = load_model(place, "best")
        actor = as_exported(exportable(trained.model.policy, trained.statistics))
        models[name] = measured(environments.evaluation(AT_ONCE), actor, place.name)
    return schemes, models
