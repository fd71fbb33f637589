"""Actions between updates: records, evaluations, pictures.

Callbacks do not use the global random generators, so they do not change the results of learning.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import mmap
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from typing_extensions import override

from ccgym.errors import ResultsError
from ccgym.files import atomic_write
from ccgym.schemes.policy_card import PolicyCard
from ccgym.training import normalizer as normalizers
from ccgym.training.checkpoint import plain, with_arrays
from ccgym.training.evaluation import (
    Baselines,
    EvaluationResult,
    deterministic,
    evaluate,
    evaluation_seed,
    measure_scheme,
)
from ccgym.training.logs import Table
from ccgym.training.model import write_model
from ccgym.training.run_directory import environment
from ccgym.training.session import Callback, Session
from ccgym.training.torch_policy import exportable
from ccgym.training.training_env import PastPolicy

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env import VecEnv

PICTURE: Final = "episode/held_out_path_1"
"""TensorBoard's tag of an episode's picture."""

_DECISIONS_TIMED: Final = 25


# --- Evaluation -------------------------------------------------------------------------------------------------------


class EvaluationCallback(Callback):
    """Evaluates the policy without exploration on the held-out paths, next to the baselines; keeps the best model.

    The baselines are measured once, in the same environments: the scheme decides, with the agent's clock and reward.
    ``evaluations.csv`` has a row per evaluation; the model of the best evaluation is in ``best/``. If matplotlib is
    installed, the first held-out path is run again after each evaluation, and drawn.
    """

    _env: VecEnv
    _drawn: VecEnv | None = None

    def __init__(self) -> None:
        self.baselines = Baselines()
        self.best: tuple[int, float] | None = None
        """Step and mean episode reward of the best evaluation."""
        self.evaluated_at = -1
        """Step of the last evaluation."""
        self._all: dict[str, list[Any]] = {"steps": [], "rewards": [], "lengths": []}
        """Step, and reward and length of each episode, for every evaluation."""

    @override
    def on_start(self, training: Session) -> None:
        """Measure the baselines, and the policy before any learning."""
        self._table = Table(training.run.evaluations, None if training.is_new else training.step)
        self._env = normalizers.frozen(training.environments.evaluation(), training.normalizer)
        self._seed = evaluation_seed(training.config)
        self.baselines = self._measure_baselines(training)
        training.display.baselines(self.baselines)
        if training.config.evaluation.figure and importlib.util.find_spec("matplotlib") is None:
            training.display.notice("matplotlib is not installed, so TensorBoard gets no figures; ccgym[report] has it")
        elif training.config.evaluation.figure:
            self._drawn = normalizers.frozen(training.environments.drawn(), training.normalizer)
        if training.is_new:
            self._evaluate(training)

    @override
    def on_update(self, training: Session, *, last: bool) -> None:
        """Evaluate if it is time, or at the end."""
        every = training.config.training.eval_every
        if training.step // every > self.evaluated_at // every or last:
            self._evaluate(training)

    def _measure_baselines(self, training: Session) -> Baselines:
        """Measure the baselines; for a resumed run, read the baselines of the run."""
        wanted, run = training.config.evaluation, training.run
        if training.resumed:
            with suppress(ResultsError, TypeError):
                known = Baselines(**run.read_json(run.baselines))
                if tuple(known.rewards) == wanted.baselines:
                    return known
        count, mean, made = wanted.episodes, wanted.per_decision, training.environments
        measured = Baselines.of(
            {
                scheme: measure_scheme(made.baseline(scheme), self._seed, count, per_decision=mean)
                for scheme in wanted.baselines
            }
        )
        atomic_write(run.baselines, json.dumps(asdict(measured), indent=1) + "\n")
        return measured

    def _evaluate(self, training: Session) -> None:
        wanted, policy = training.config.evaluation, deterministic(training.model)
        result = evaluate(self._env, policy, self._seed, wanted.episodes, per_decision=wanted.per_decision)
        step, reward = training.step, result.mean_reward
        fraction = self.baselines.fraction_of_oracle(reward)
        self.evaluated_at = step
        self._record(training, result, fraction)
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
            write_model(training.run.best, training.model, training.normalizer, facts)
        training.display.evaluation(step, result, best=is_best)
        if self._drawn is not None:
            evaluate(self._drawn, deterministic(training.model), self._seed)
            picture, *_ = self._drawn.get_images()
            training.events.add_image(PICTURE, picture, step, dataformats="HWC")

    def _record(self, training: Session, result: EvaluationResult, fraction: float | None) -> None:
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
            training.model.logger.record(name, value)
        training.model.logger.record("sys/decision_ms", self._decision_ms(training))
        self._table.add(training.step, row)
        for name, one in (("steps", training.step), ("rewards", result.rewards), ("lengths", result.lengths)):
            self._all[name].append(one)
        buffer, names = io.BytesIO(), ("timesteps", "results", "ep_lengths")  # SB3's names
        arrays = {name: np.stack(values) for name, values in zip(names, self._all.values(), strict=True)}
        np.savez(buffer, **arrays)  # type: ignore[arg-type]
        atomic_write(training.run.evaluations_npz, buffer.getvalue())

    def _decision_ms(self, training: Session) -> float:
        """Return the median time of one decision for one flow, in this process and with torch, ms."""
        policy = deterministic(training.model)
        space = self._env.observation_space
        observation = np.zeros((1, *(space.shape or ())), dtype=space.dtype)
        start = np.ones(1, dtype=np.bool_)
        times = []
        for _ in range(_DECISIONS_TIMED):
            began = time.perf_counter()
            policy(observation, start)
            times.append(time.perf_counter() - began)
        return 1e3 * float(np.median(times))

    def state(self) -> dict[str, Any]:
        """Return the best evaluation so far, and the contents of ``evaluations.npz``, for a checkpoint."""
        state: dict[str, Any] = plain({"best": self.best, "evaluated_at": self.evaluated_at, **self._all})
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from the result of :meth:`state`."""
        self.best = None if state["best"] is None else (int(state["best"][0]), float(state["best"][1]))
        self.evaluated_at = state["evaluated_at"]
        self._all = {name: with_arrays(list(state[name])) for name in self._all}


class PastPoliciesCallback(Callback):
    """Keeps the policy at regular steps, if the configuration has flows of earlier selves."""

    @override
    def on_update(self, training: Session, *, last: bool) -> None:
        earlier = training.rollouts.earlier
        if earlier is None or not earlier.is_due(training.step):
            return
        config, learner = training.config, training.config.environment.flows_that_learn[0]
        name = f"{config.name.lower()[:40]}-{training.step}"
        policy = exportable(training.model.policy, normalizers.observation_statistics(training.normalizer))
        network = policy.onnx(name)
        # The agent of the training, not of a deployment.
        agent = config.agent.native()
        agent.pop("expert", None)
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
        training.rollouts.add_past(PastPolicy(training.step, network, card.to_json()))


# --- Records ----------------------------------------------------------------------------------------------------------


class RecordsCallback(Callback):
    """Writes ``config`` and ``versions``, ``sys/…``, ``time/share_…``, ``curriculum/…`` and missed deadlines.

    It also advances the curriculum: the training environments draw their next episodes from it.
    """

    _cpu_s = _wall_s = 0.0
    _missed = 0

    @override
    def on_start(self, training: Session) -> None:
        """Write the texts of a new run, and start the clocks."""
        if training.is_new:
            training.events.add_text("config", _code(training.config.as_yaml()), 0)
            training.events.add_text("versions", _code(json.dumps(environment(), indent=1)), 0)
        self._cpu_s, self._wall_s = time.process_time(), time.perf_counter()

    @override
    def on_update(self, training: Session, *, last: bool) -> None:
        spent, logger, rollouts = training.spent, training.model.logger, training.rollouts
        logger.record("sys/steps_per_second", spent.steps / max(spent.total_s, 1e-9))
        for name, share in spent.shares().items():
            logger.record(f"time/share_{name}", share)
        cpu_s, wall_s = time.process_time(), time.perf_counter()
        logger.record("sys/cpu_percent", 100 * (cpu_s - self._cpu_s) / max(wall_s - self._wall_s, 1e-9))
        self._cpu_s, self._wall_s = cpu_s, wall_s
        memory = resident_mib()
        if memory is not None:
            logger.record("sys/rss_mib", memory)
        if rollouts.curriculum is not None:
            rollouts.set_progress(min(1.0, training.step / training.config.training.steps))
            logger.record("curriculum/level", rollouts.curriculum.level())
        if rollouts.missed_deadlines is not None:
            logger.record("environment/missed_deadlines", rollouts.missed_deadlines - self._missed)
            self._missed = rollouts.missed_deadlines


def resident_mib() -> float | None:
    """Return the resident memory of this process, MiB; None if the system does not provide it."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * mmap.PAGESIZE / 2**20


def _code(text: str) -> str:
    """Return a text as code: TensorBoard shows Markdown, in which four blanks mark code."""
    return "".join(f"    {line}\n" for line in text.splitlines())
