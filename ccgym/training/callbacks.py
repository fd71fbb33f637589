"""What happens between updates: what is recorded, evaluations, pictures.

Callbacks draw nothing from the global random generators, so they do not change what is learned.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from typing_extensions import override

from ccgym.config.grown import Binned, GapBins, GapSearch, GrowingPlan, Searched
from ccgym.errors import ResultsError
from ccgym.files import atomic_write
from ccgym.schemes.policy_card import PolicyCard
from ccgym.training import normalizer as normalizers
from ccgym.training.earlier_self import EarlierPolicy
from ccgym.training.evaluation import (
    Actor,
    Baselines,
    DeterministicPolicy,
    EvaluationResult,
    evaluate,
    evaluation_seed,
    measure_schemes,
)
from ccgym.training.gaps import Measured, numbers, pool, search
from ccgym.training.logs import Table
from ccgym.training.run_directory import environment
from ccgym.training.saved_model import write_model
from ccgym.training.streams import stream_seed
from ccgym.training.torch_policy import exportable

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env import VecEnv

    from ccgym.training.trainer import Trainer

PICTURE: Final = "episode/held_out_path_1"
"""TensorBoard's tag of the picture of an episode."""

_DECISIONS_TIMED: Final = 25


class Callback:
    """Does something between updates. What it records with ``trainer.model.logger`` goes to CSV and TensorBoard."""

    def on_start(self, trainer: Trainer) -> None:
        """Before the first update, or the first one after a resume."""

    def on_update(self, trainer: Trainer, *, last: bool) -> None:
        """After an update, before its row is written.

        Args:
            trainer: Where everything is.
            last: Whether training has reached its end.
        """


# --- Evaluation -------------------------------------------------------------------------------------------------------


class EvaluationCallback(Callback):
    """The policy without exploration on the held-out paths, next to the baselines; keeps the best model.

    The baselines are measured once, through the same environments: the scheme decides, the agent's clock and reward
    measure. ``evaluations.csv`` has a row per evaluation; the model of the best one goes to ``best/``. Where matplotlib
    is installed, the first held-out path is run again after each evaluation, and drawn.
    """

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
        self._drawn: VecEnv | None = None

    @property
    def has_begun(self) -> bool:
        """Whether the policy was evaluated as it was before any learning: the first checkpoint is from before that."""
        return self.evaluated_at >= 0

    # --- When ---------------------------------------------------------------------------------------------------------

    @override
    def on_start(self, trainer: Trainer) -> None:
        """Measure the baselines, and the policy as it is before any learning."""
        self._table = Table(trainer.run.evaluations, trainer.step if self.has_begun else None)
        self._env = normalizers.frozen(trainer.environments.evaluation(), trainer.normalizer)
        self._seed = evaluation_seed(trainer.config)
        self.baselines = self._known_baselines(trainer) or self._measure_baselines(trainer)
        trainer.display.baselines(self.baselines)
        if trainer.config.evaluation.figure and importlib.util.find_spec("matplotlib") is None:
            trainer.display.notice("matplotlib is not installed, so TensorBoard gets no figures; ccgym[report] has it")
        elif trainer.config.evaluation.figure:
            self._drawn = normalizers.frozen(trainer.environments.drawn(), trainer.normalizer)
        if not self.has_begun:
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
            known = Baselines(**trainer.run.read_json(file))
        except (ResultsError, TypeError):
            return None
        return known if tuple(known.rewards) == trainer.config.evaluation.baselines else None

    def _measure_baselines(self, trainer: Trainer) -> Baselines:
        wanted = trainer.config.evaluation
        measured = Baselines.of(
            measure_schemes(
                trainer.environments, wanted.baselines, self._seed, wanted.episodes, per_decision=wanted.per_decision
            )
        )
        atomic_write(trainer.run.baselines, json.dumps(asdict(measured), indent=1) + "\n")
        return measured

    # --- The policy ---------------------------------------------------------------------------------------------------

    def _evaluate(self, trainer: Trainer) -> None:
        assert self._env is not None
        wanted = trainer.config.evaluation
        result = evaluate(
            self._env, DeterministicPolicy(trainer.model), self._seed, wanted.episodes, per_decision=wanted.per_decision
        )
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
                "baselines": asdict(self.baselines),
            }
            write_model(trainer.run.best, trainer.model, trainer.normalizer, facts)
        trainer.display.evaluation(step, result, best=is_best)
        if self._drawn is not None:
            evaluate(self._drawn, DeterministicPolicy(trainer.model), self._seed)
            picture, *_ = self._drawn.get_images()
            trainer.events.add_image(PICTURE, picture, step, dataformats="HWC")

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


# --- Curricula that are told ------------------------------------------------------------------------------------------


class CurriculumCallback(Callback):
    """Measures what a curriculum of :mod:`ccgym.config.grown` grows by, and tells it.

    ``curriculum.csv`` has a row per point that was measured: its numbers, both rewards, the gap, and whether it joined
    the mixture. TensorBoard gets the gap and the numbers of each point that joined. All draws come from streams of the
    root seed, so a resumed run finds the same points.
    """

    def __init__(self) -> None:
        self._table: Table | None = None

    @override
    def on_start(self, trainer: Trainer) -> None:
        """Check the schemes, and fill the bins of a plan in bins."""
        plan, curriculum = trainer.config.environment.paths, trainer.rollouts.curriculum
        if not isinstance(plan, GrowingPlan):
            return
        self._table = Table(trainer.run.curriculum, trainer.step if trainer.resumed else None)
        keys = ("baseline",) if isinstance(plan, GapSearch) else ("better", "worse")
        for key in keys:
            trainer.environments.check_scheme(getattr(plan, key), f"environment.paths.{key}")
        if isinstance(plan, GapBins) and isinstance(curriculum, Binned) and not curriculum.bins:
            trainer.display.notice(f"measuring {plan.better} and {plan.worse} at {plan.pool} points")
            measured = pool(plan, trainer.environments, self._seed(trainer))
            curriculum.fill([one.point for one in measured], [one.gap for one in measured])
            for one in measured:
                self._add(trainer, plan, one, joined=True)
            trainer.rollouts.set_progress(0.0)
            trainer.begin_episodes()

    @override
    def on_update(self, trainer: Trainer, *, last: bool) -> None:
        """Search if it is time."""
        plan, curriculum = trainer.config.environment.paths, trainer.rollouts.curriculum
        if not isinstance(plan, GapSearch) or not isinstance(curriculum, Searched) or last:
            return
        if trainer.step // plan.every <= len(curriculum.points):
            return
        began = time.perf_counter()
        measured, best = search(plan, trainer.environments, lambda env: self._policy(trainer, env), self._seed(trainer))
        curriculum.points.append(best.point)
        for one in measured:
            self._add(trainer, plan, one, joined=one is best)
        found = numbers(plan.space, best.point)
        row = {"gap": best.gap, "gap_median": float(np.median([one.gap for one in measured]))}
        for name, value in {**row, **found}.items():
            trainer.model.logger.record(f"curriculum/{name}", value)
        trainer.model.logger.record("time/search_s", time.perf_counter() - began)
        parts = ", ".join(f"{name} {value:.4g}" for name, value in found.items())
        trainer.display.notice(f"step {trainer.step:,}: gap {best.gap:.1f} to {plan.baseline} at {parts}")

    def _seed(self, trainer: Trainer) -> int:
        return stream_seed(trainer.config.training.seed, f"curriculum {trainer.step}")

    def _policy(self, trainer: Trainer, env: VecEnv) -> tuple[VecEnv, Actor]:
        return normalizers.frozen(env, trainer.normalizer), DeterministicPolicy(trainer.model)

    def _add(self, trainer: Trainer, plan: GapSearch | GapBins, one: Measured, *, joined: bool) -> None:
        first, second = (plan.baseline, "policy") if isinstance(plan, GapSearch) else (plan.better, plan.worse)
        row = {
            "guided": int(one.guided),
            **numbers(plan.space, one.point),
            f"reward_{first}": one.first,
            f"reward_{second}": one.second,
            "gap": one.gap,
            "joined": int(joined),
        }
        assert self._table is not None
        self._table.add(trainer.step, row)


# --- Earlier selves ---------------------------------------------------------------------------------------------------


class EarlierSelfCallback(Callback):
    """Keeps the policy every so many steps, where the configuration has flows of earlier selves."""

    @override
    def on_update(self, trainer: Trainer, *, last: bool) -> None:
        earlier = trainer.rollouts.earlier
        if earlier is None or not earlier.is_due(trainer.step):
            return
        trainer.rollouts.add_earlier(_policy_now(trainer))


def _policy_now(trainer: Trainer) -> EarlierPolicy:
    """The policy that is trained, with the agent of the training, not that of a deployment."""
    config = trainer.config
    name = f"{config.name.lower()[:40]}-{trainer.step}"
    statistics = normalizers.observation_statistics(trainer.normalizer)
    policy = exportable(trainer.model.policy, statistics)
    network = policy.onnx(name)
    agent = config.agent.native()
    agent.pop("expert", None)
    learner = config.environment.flows_that_learn[0]
    card = PolicyCard(
        name=name,
        label=name,
        color="gray",
        marker=".",
        summary=f"An earlier self of {config.name}.",
        reference="trained by ccgym",
        agent=agent,
        policy=policy.shape,
        onnx_sha256=hashlib.sha256(network).hexdigest(),
        profile=learner.profile,
        ack_every=learner.ack_every,
    )
    return EarlierPolicy(trainer.step, network, card.to_json())


# --- Records ----------------------------------------------------------------------------------------------------------


class RecordsCallback(Callback):
    """Writes ``config`` and ``versions``, ``sys/…``, ``time/share_…``, ``curriculum/…`` and missed deadlines.

    It also moves the curriculum on: the training environments draw their next episodes accordingly.
    """

    def __init__(self) -> None:
        self._cpu_s = 0.0
        self._wall_s = 0.0
        self._missed = 0

    @override
    def on_start(self, trainer: Trainer) -> None:
        """Write the texts of a new run, and start the clocks."""
        if not trainer.evaluation.has_begun:
            trainer.events.add_text("config", _code(trainer.config.as_yaml()), 0)
            trainer.events.add_text("versions", _code(json.dumps(environment(), indent=1)), 0)
        self._cpu_s, self._wall_s = time.process_time(), time.perf_counter()

    @override
    def on_update(self, trainer: Trainer, *, last: bool) -> None:
        self._record_system(trainer)
        self._move_curriculum(trainer)
        missed = trainer.rollouts.missed_deadlines
        if missed is not None:
            trainer.model.logger.record("environment/missed_deadlines", missed - self._missed)
            self._missed = missed

    def _record_system(self, trainer: Trainer) -> None:
        spent, logger = trainer.spent, trainer.model.logger
        logger.record("sys/steps_per_second", spent.steps / max(spent.total_s, 1e-9))
        for name, share in spent.shares().items():
            logger.record(f"time/share_{name}", share)
        cpu_s, wall_s = time.process_time(), time.perf_counter()
        logger.record("sys/cpu_percent", 100 * (cpu_s - self._cpu_s) / max(wall_s - self._wall_s, 1e-9))
        self._cpu_s, self._wall_s = cpu_s, wall_s
        memory = resident_mib()
        if memory is not None:
            logger.record("sys/rss_mib", memory)

    def _move_curriculum(self, trainer: Trainer) -> None:
        curriculum = trainer.rollouts.curriculum
        if curriculum is not None:
            trainer.rollouts.set_progress(min(1.0, trainer.step / trainer.config.training.steps))
            trainer.model.logger.record("curriculum/level", curriculum.level())


def resident_mib() -> float | None:
    """Memory of this process that is in use now, in MiB; None where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _code(text: str) -> str:
    """A text as code: TensorBoard shows Markdown, in which four blanks mean that."""
    return "".join(f"    {line}\n" for line in text.splitlines())
