"""Evaluation while training runs: the policy without exploration on the held-out paths, and the baselines.

The baselines are measured once, through the same environments: the scheme decides, the agent's clock and reward
measure. ``evaluations.csv`` has a row per evaluation; the model of the best one goes to ``best/``.
"""

from __future__ import annotations

import io
import json
import time
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from typing_extensions import override

from ccgym.errors import ResultsError
from ccgym.files import atomic_write
from ccgym.training import normalizer as normalizers
from ccgym.training.callbacks.base import Callback
from ccgym.training.evaluation import (
    Baselines,
    DeterministicPolicy,
    EvaluationResult,
    evaluate,
    evaluation_seed,
)
from ccgym.training.logs import Table
from ccgym.training.saved_model import write_model

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env import VecEnv

    from ccgym.training.trainer import Trainer

_DECISIONS_TIMED: Final = 25


class EvaluationCallback(Callback):
    """Evaluates, and keeps the best model."""

    def __init__(self) -> None:
        self.baselines = Baselines()
        self.best: tuple[int, float] | None = None
        """Step and mean episode reward of the best evaluation."""
        self.evaluated_at = -1
        """Step of the last evaluation."""
        self._steps: list[int] = []
        self._rewards: list[torch.Tensor] = []
        self._lengths: list[torch.Tensor] = []
        self._env: VecEnv | None = None

    # --- When ---------------------------------------------------------------------------------------------------------

    @override
    def on_start(self, trainer: Trainer) -> None:
        """Measure the baselines, and the policy as it is before any learning."""
        self._table = Table(trainer.run.evaluations, trainer.step if trainer.resumed else None)
        self._env = normalizers.frozen(trainer.environments.evaluation(), trainer.normalizer)
        self._seed = evaluation_seed(trainer.config)
        self.baselines = self._known_baselines(trainer) or self._measure_baselines(trainer)
        trainer.display.baselines(self.baselines)
        if not trainer.resumed:
            self._evaluate(trainer)

    @override
    def on_update(self, trainer: Trainer, *, last: bool) -> None:
        """Evaluate if it is time, or the end."""
        every = trainer.config.training.eval_every
        if trainer.step // every > self.evaluated_at // every or last:
            self._evaluate(trainer)

    # --- Baselines ----------------------------------------------------------------------------------------------------

    def _known_baselines(self, trainer: Trainer) -> Baselines | None:
        """Those of the same run, measured before it was resumed."""
        file = trainer.run.baselines
        if not trainer.resumed or not file.exists():
            return None
        try:
            known = Baselines.from_dict(trainer.run.read_json(file))
        except (ResultsError, KeyError, TypeError, ValueError):
            return None
        return known if tuple(known.rewards) == trainer.config.evaluation.baselines else None

    def _measure_baselines(self, trainer: Trainer) -> Baselines:
        rewards, metrics = {}, {}
        for scheme in trainer.config.evaluation.baselines:
            env = trainer.environments.baseline(scheme)
            idle = np.zeros((env.num_envs, *(env.action_space.shape or ())), dtype=env.action_space.dtype)
            episodes = trainer.config.evaluation.episodes
            result = evaluate(env, lambda observations, starts, idle=idle: idle, self._seed, episodes=episodes)
            env.close()
            rewards[scheme], metrics[scheme] = result.mean_reward, result.metrics
        measured = Baselines(rewards, metrics)
        atomic_write(trainer.run.baselines, json.dumps(measured.as_dict(), indent=1) + "\n")
        return measured

    # --- The policy ---------------------------------------------------------------------------------------------------

    def _evaluate(self, trainer: Trainer) -> None:
        assert self._env is not None
        episodes = trainer.config.evaluation.episodes
        result = evaluate(self._env, DeterministicPolicy(trainer.model), self._seed, episodes=episodes)
        step, reward = trainer.step, result.mean_reward
        fraction = self.baselines.fraction_of_oracle(reward)
        self.evaluated_at = step
        self._record(trainer, result, fraction)
        is_best = self.best is None or reward > self.best[1]
        if is_best:
            self.best = (step, reward)
            facts: dict[str, Any] = {
                "step": step,
                "mean_reward": reward,
                "fraction_of_oracle": fraction,
                "metrics": result.metrics,
                "baselines": self.baselines.as_dict(),
            }
            write_model(trainer.run.best, trainer.model, trainer.normalizer, facts)
        trainer.display.evaluation(step, result, best=is_best)

    def _record(self, trainer: Trainer, result: EvaluationResult, fraction: float | None) -> None:
        row: dict[str, float] = {
            "eval/mean_reward": result.mean_reward,
            "eval/std_reward": float(result.rewards.std()),
            "eval/mean_ep_length": float(result.lengths.mean()),
        }
        if fraction is not None:
            row["eval/fraction_of_oracle"] = fraction
        # Constants, so that TensorBoard draws them as lines next to the policy's curve.
        row |= {f"eval/baseline_{scheme}": reward for scheme, reward in self.baselines.rewards.items()}
        row |= {f"net/{name}": value for name, value in result.metrics.items()}
        row |= {f"reward/{name}": value for name, value in result.terms.items()}
        for name, value in row.items():
            trainer.model.logger.record(name, value)
        trainer.model.logger.record("sys/decision_ms", self._decision_ms(trainer))
        self._table.add(trainer.step, row)
        self._steps.append(trainer.step)
        self._rewards.append(torch.from_numpy(result.rewards.copy()))
        self._lengths.append(torch.from_numpy(result.lengths.copy()))
        buffer = io.BytesIO()
        np.savez(
            buffer,
            timesteps=np.array(self._steps),
            results=np.stack([rewards.numpy() for rewards in self._rewards]),
            ep_lengths=np.stack([lengths.numpy() for lengths in self._lengths]),
        )
        atomic_write(trainer.run.evaluations_npz, buffer.getvalue())

    def _decision_ms(self, trainer: Trainer) -> float:
        """Median time of one decision for one flow, in this process and through torch."""
        assert self._env is not None
        policy = DeterministicPolicy(trainer.model)
        space = self._env.observation_space
        observation = np.zeros((1, *(space.shape or ())), dtype=space.dtype)
        start = np.ones(1, dtype=np.bool_)
        times = []
        for _ in range(_DECISIONS_TIMED):
            began = time.perf_counter()
            policy(observation, start)
            times.append(time.perf_counter() - began)
        return 1e3 * float(np.median(times))

    # --- Checkpoints --------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """The best so far, and what ``evaluations.npz`` holds."""
        return {
            "best": self.best,
            "evaluated_at": self.evaluated_at,
            "steps": self._steps,
            "rewards": self._rewards,
            "lengths": self._lengths,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from there."""
        self.best = None if state["best"] is None else (int(state["best"][0]), float(state["best"][1]))
        self.evaluated_at = state["evaluated_at"]
        self._steps, self._rewards, self._lengths = list(state["steps"]), list(state["rewards"]), list(state["lengths"])
