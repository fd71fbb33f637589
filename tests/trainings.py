"""Trainings of tests: a learner that is ready, a run in a directory, its tables, and the end of a process."""

from __future__ import annotations

import csv
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import TypeAdapter
from stable_baselines3.common.logger import Logger

from ccgym.training.algorithms.config import AlgorithmField
from ccgym.training.config import TrainConfig
from ccgym.training.evaluation import Baselines, EvaluationResult
from ccgym.training.model import LEARNERS
from ccgym.training.run_directory import RunDirectory
from ccgym.training.trainer import Outcome, Trainer


class Killed(BaseException):
    """Stands for the end of the process."""


class Quiet:
    """A display that remembers."""

    def __init__(self) -> None:
        self.notices: list[str] = []
        self.evaluations: list[tuple[int, float, bool]] = []

    def notice(self, text: str) -> None:
        self.notices.append(text)

    def baselines(self, measured: Baselines) -> None:
        self.measured = measured

    def update(self, step: int, reward: float | None, steps_per_second: float) -> None: ...
    def evaluation(self, step: int, result: EvaluationResult, *, best: bool) -> None:
        self.evaluations.append((step, result.mean_reward, best))


def run(
    place: Path,
    config: TrainConfig,
    environments: Any,
    *,
    resume: bool = False,
    display: Any = None,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Train in a directory."""
    with RunDirectory(place) as directory:
        if not resume:
            directory.claim(config.as_yaml(), {}, [])
        made = Trainer(config, directory, display or Quiet(), device="cpu", environments=environments, clock=clock)
        return made.train(resume=resume)


def tables(place: Path) -> dict[str, list[dict[str, str]]]:
    """The rows of all tables of a run, but what a clock says."""
    found = {}
    for file in (place / f"{name}.csv" for name in ("progress", "evaluations", "curriculum")):
        if file.exists():
            with file.open() as text:
                found[file.stem] = [
                    {name: value for name, value in row.items() if not name.startswith(("time/", "sys/"))}
                    for row in csv.DictReader(text)
                ]
    return found


def learner(name: str, env: Any, **settings: Any) -> Any:
    """A learner of these environments, its episodes begun; reproducible."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    np.random.seed(1)  # noqa: NPY002
    content = {"name": name, "n_envs": env.num_envs, **settings}
    return ready(LEARNERS[name](TypeAdapter(AlgorithmField).validate_python(content), env, "cpu"), env)


def ready(model: Any, env: Any) -> Any:
    """A learner as the trainer sets it up, its episodes begun."""
    model.set_logger(Logger(None, []))
    model.ep_info_buffer, model.ep_success_buffer = deque(maxlen=100), deque(maxlen=100)
    model._last_obs, model._last_episode_starts = env.reset(), np.ones(env.num_envs, dtype=bool)
    return model
