"""Training: rollout, update, evaluation, checkpoint, again; from the beginning or from where a killed run stopped.

A run that was killed at any moment and resumed gives the same weights and the same curve as one that was not. For
that, a checkpoint holds all that the next update depends on: policy, optimizer, normalizer, counters, every random
generator, a recurrent policy's state, and the environments. The last are not stored but repeated: each environment's
random stream as it was before its present episode, and the decisions since. The simulator does not forget what it did
from the same seed, so restoring takes as long as the longest episode under way.

Only what is measured with a clock differs: columns and tags ``time/`` and ``sys/``.
"""

from __future__ import annotations

import io
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from stable_baselines3.common.callbacks import CallbackList

from ccgym.errors import ResultsError, SimulationError
from ccgym.files import atomic_write, disk_error, settle_directory
from ccgym.training import normalizer as normalizers
from ccgym.training.callbacks import EvaluationCallback, PastPoliciesCallback, RecordsCallback
from ccgym.training.checkpoint import MODEL, Checkpoint, checkpoint_to_resume, remove_leftovers, write_checkpoint
from ccgym.training.config import TrainConfig
from ccgym.training.environments import Environments, normalized
from ccgym.training.gaps import CurriculumCallback
from ccgym.training.logs import Table, make_logger, quiet_event_writer
from ccgym.training.model import (
    DAMAGE,
    build_model,
    choose_device,
    learner_state,
    model_bytes,
    read_card,
    set_learner_state,
    set_up_torch,
    start_from,
    weights_hash,
    what_is_damaged,
    write_model,
)
from ccgym.training.progress import ProgressDisplay, StopRequest
from ccgym.training.run_directory import RunDirectory, open_run
from ccgym.training.session import Callback, Session, Spent
from ccgym.training.streams import STREAMS, capture_generators, restore_generators, stream_seed

CHECKPOINT_S: Final = 60.0
"""The first update that ends so long after a checkpoint is followed by one, seconds of wall time."""
_RECENT_EPISODES: Final = 100
"""Episodes that ``rollout/ep_rew_mean`` is the mean of."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    run_dir: Path
    step: int
    """Decisions taken."""
    stopped: bool
    """Whether a signal ended it early; then it can be resumed."""
    seconds: float
    """Wall time of training, over all runs of a resumed training."""
    shares: dict[str, float]
    """Where the time of its updates went: see :meth:`Spent.shares`."""
    weights_sha256: str
    best_step: int | None
    best_reward: float | None
    """Its mean episode reward."""
    best_fraction: float | None
    """The same as a fraction of the oracle's; None where that is not the maximum."""


class Trainer(Session):
    """One run of training.

    Args:
        config: What to train.
        run: Where; its lock is held.
        display: Shows how it goes.
        device: See :func:`ccgym.training.model.choose_device`.
        environments: Where the environments come from, if not from the configuration.
        clock: Seconds of wall time; what it says decides only when checkpoints are written.
    """

    def __init__(
        self,
        config: TrainConfig,
        run: RunDirectory,
        display: ProgressDisplay,
        *,
        device: str = "auto",
        environments: Environments | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.config = config
        self.run = run
        self.display = display
        self._clock = clock
        self.device = choose_device(device, config.algorithm)
        self.environments = environments or Environments(config)
        self.updates = 0
        self.seconds = 0.0
        self.spent = Spent()
        self.spent_in_all = Spent()
        """By all updates, over all runs of a resumed training."""
        self.completed = False
        self.evaluation = EvaluationCallback()
        self.callbacks: tuple[Callback, ...] = (
            CurriculumCallback(), RecordsCallback(), PastPoliciesCallback(), self.evaluation,
        )  # fmt: skip

    def train(self, *, resume: bool, command: Sequence[str] = ()) -> Outcome:
        """Train to the end, to the time limit, or until a signal comes.

        Args:
            resume: Whether to continue from the newest intact checkpoint.
            command: The command line of a resumption, for the record.

        Raises:
            ResultsError: There is none, or it was trained with another configuration.
            PlatformError: The disk is full; earlier checkpoints are untouched.
            SimulationError: Learning diverged.
        """
        set_up_torch(self.config.training.torch_threads)
        checkpoint = None
        if resume:
            checkpoint = checkpoint_to_resume(self.run, self.config, self.display.notice)
            self.run.note_start(command)
            atomic_write(self.run.config, self.config.as_yaml())
        self.resumed = checkpoint is not None
        try:
            with quiet_event_writer(), ExitStack() as stack:
                self._build(checkpoint, stack)
                self._loop(stack.enter_context(StopRequest(self.display.notice)))
        except OSError as error:
            # Tables and event files are written as training goes, by us and by TensorBoard.
            raise disk_error(error, self.run.path) from None
        best, baselines = self.evaluation.best, self.evaluation.baselines
        return Outcome(
            run_dir=self.run.path,
            step=self.step,
            stopped=not self.completed,
            seconds=self.seconds,
            shares=self.spent_in_all.shares(),
            weights_sha256=weights_hash(self.model),
            best_step=None if best is None else best[0],
            best_reward=None if best is None else best[1],
            best_fraction=baselines.fraction_of_oracle(best[1]) if best and baselines.oracle_bounds else None,
        )

    # --- Beginning ----------------------------------------------------------------------------------------------------

    def _build(self, checkpoint: Checkpoint | None, stack: ExitStack) -> None:
        config, resume_at = self.config, None if checkpoint is None else checkpoint.step
        for directory in (self.run.best, self.run.final):
            settle_directory(directory)
        remove_leftovers(self.run.checkpoints, -1 if resume_at is None else resume_at)
        if checkpoint is not None:
            self.evaluation.restore(checkpoint.state["callbacks"]["evaluation"])
            self.is_new = self.evaluation.evaluated_at < 0
            if self.is_new:
                resume_at = -1  # rows of step 0 come again
        self.rollouts = self.environments.training()
        self.env = normalized(self.rollouts, config.algorithm)
        stack.callback(self.env.close)
        self.model = build_model(config.algorithm, self.env, config.training.seed, self.device)
        self.normalizer = self.model.get_vec_normalize_env()
        logger, self.events = make_logger(Table(self.run.progress, resume_at), self.run.path, resume_at)
        stack.callback(self.events.close)
        self.model.set_logger(logger)
        # What SB3's learn() sets up; the loop itself is ours, so that it can stop and continue between any two updates.
        self.model.ep_info_buffer = deque(maxlen=_RECENT_EPISODES)
        self.model.ep_success_buffer = deque(maxlen=_RECENT_EPISODES)
        self.model._total_timesteps = config.training.steps
        self._silent = CallbackList([])  # what SB3's rollouts call
        self._silent.init_callback(self.model)
        if checkpoint is None:
            if config.training.start_from is not None:
                start_from(self.model, Path(config.training.start_from))
            self.env.seed(stream_seed(config.training.seed, "environment"))
            self.begin_episodes()
            self.rollouts.pause()
        else:
            self._restore(checkpoint)
        self.model.start_time = time.time_ns()
        self.model._num_timesteps_at_start = self.step

    # --- The loop -----------------------------------------------------------------------------------------------------

    def _loop(self, stop: StopRequest) -> None:
        every = self.config.training.checkpoint_every
        for callback in self.callbacks:
            if callback is self.evaluation and not self.resumed:
                self._save()  # measuring the baselines can take minutes
            callback.on_start(self)
        if self.is_new:
            self.model.logger.dump(self.step)
            self._save()
        saved, saved_at = self.step, self._clock()
        last = self.is_finished()
        while not last and not stop.requested():
            began = time.perf_counter()
            self._update()
            self.seconds += self.spent.total_s
            last = self.is_finished()
            for callback in self.callbacks:
                callback.on_update(self, last=last)
            self.model.dump_logs(self.updates)
            self.seconds += time.perf_counter() - began - self.spent.total_s
            rewards = [episode["r"] for episode in self.model.ep_info_buffer or ()]
            reward = float(np.mean(rewards)) if rewards else None
            self.display.update(self.step, reward, self.spent.steps / max(self.spent.total_s, 1e-9))
            late = self._clock() - saved_at >= CHECKPOINT_S
            if last or stop.requested() or late or self.step // every > saved // every:
                self._save()
                saved, saved_at = self.step, self._clock()
        if last:
            write_model(self.run.final, self.model, self.normalizer, {"step": self.step})
        self.completed = last

    def is_finished(self) -> bool:
        """Whether all steps are taken, or the time is up."""
        training = self.config.training
        limit = math.inf if training.time_limit is None else training.time_limit / 1e9
        return self.step >= training.steps or self.seconds >= limit

    def _update(self) -> None:
        """Take decisions with the present policy, then learn from them."""
        model, spent = self.model, Spent()
        self.rollouts.seconds = 0.0
        began = time.perf_counter()
        if self.rollouts.paused:
            self.begin_episodes()
        try:
            model.collect_rollouts(self.env, self._silent, model.rollout_buffer, model.n_steps)
            self.rollouts.pause()
            collected = time.perf_counter()
            model._update_current_progress_remaining(model.num_timesteps, self.config.training.steps)
            model.train()
        except ValueError as error:
            # What torch's distributions say to infinite, absent or zero parameters.
            if str(error).startswith("Expected parameter"):
                raise self._diverged() from None
            raise
        if not all(bool(torch.isfinite(weights).all()) for weights in model.policy.parameters()):
            raise self._diverged()
        done = time.perf_counter()
        spent.steps = model.num_timesteps - self.step
        spent.total_s, spent.learning_s = done - began, done - collected
        spent.environment_s = self.rollouts.seconds
        self.spent = spent
        self.spent_in_all.add(spent)
        self.step = model.num_timesteps
        self.updates += 1

    def _diverged(self) -> SimulationError:
        """Such weights are not worth a checkpoint."""
        return SimulationError(
            "learning-diverged",
            f"learning has diverged after {self.step:,} steps: the policy's weights are not finite",
            where=str(self.run.path),
            expected="finite weights",
            hint="lower algorithm.learning_rate or algorithm.max_grad_norm; the last checkpoint is from before",
        )

    # --- Checkpoints --------------------------------------------------------------------------------------------------

    def _save(self) -> None:
        self.events.flush()
        model = self.model
        state = {
            "configuration": self.config.fixed(),
            "updates": self.updates,
            "seconds": self.seconds,
            "spent": vars(self.spent_in_all),
            **learner_state(model),
            "normalizer": normalizers.capture(self.normalizer),
            "environments": self.rollouts.capture(),
            "callbacks": {"evaluation": self.evaluation.state()},
            "generators": capture_generators(),
        }
        checkpoint = Checkpoint(self.step, model_bytes(model), state)
        write_checkpoint(self.run.checkpoints, checkpoint, self.config.training.keep_checkpoints)

    def _restore(self, checkpoint: Checkpoint) -> None:
        model, state = self.model, checkpoint.state
        try:
            model.set_parameters(io.BytesIO(checkpoint.model), device=self.device)  # type: ignore[arg-type]
        except DAMAGE as error:
            raise ResultsError(
                "checkpoint-damaged",
                what_is_damaged(error),
                where=str(self.run.checkpoints / f"step_{checkpoint.step}" / MODEL),
                expected="weights as `ccgym train` wrote them",
                hint="remove this checkpoint, and the one before it is continued",
            ) from None
        self.step = model.num_timesteps = checkpoint.step
        self.updates, self.seconds = state["updates"], state["seconds"]
        self.spent_in_all = Spent(**state["spent"])
        seen: Any = self.rollouts.restore(state["environments"])
        normalizers.restore(self.normalizer, state["normalizer"])
        set_learner_state(model, state)
        if seen is not None and self.normalizer is not None:
            seen = self.normalizer.normalize_obs(seen)
        if seen is None:
            self.display.notice("episodes on real paths do not come back; new ones begin")
        elif not np.array_equal(seen, model._last_obs):  # type: ignore[arg-type]
            raise ResultsError(
                "resume-changed",
                "the environments no longer do what they did when the checkpoint was written",
                where=str(self.run.path),
                expected="the same simulator, configuration and traces",
                hint="resume with the version of ccgym in versions.json, or start a new run",
            )
        # Last: nothing after this may draw.
        restore_generators(state["generators"])


def train(
    config: TrainConfig,
    run_dir: Path,
    display: ProgressDisplay,
    *,
    resume: bool = False,
    device: str = "auto",
    command: Sequence[str] = (),
) -> Outcome:
    """Train in a directory, new or resumed.

    Args:
        config: What to train; for a resumed run, that of the directory.
        run_dir: The run directory.
        display: Shows how it goes.
        resume: Whether to continue the run in the directory.
        device: ``auto``, ``cpu``, ``cuda`` …
        command: The command line, for the record.

    Raises:
        ConfigError: The device, or something in the configuration, cannot be used.
        ResultsError: Another process trains there, a run exists already, or there is nothing to resume.
        PlatformError: The disk is full or cannot be written; earlier checkpoints are untouched.
    """
    # Before anything is written.
    device = choose_device(device, config.algorithm)
    if config.training.start_from is not None and not resume:
        read_card(open_run(Path(config.training.start_from)))
    with RunDirectory(run_dir) as run:
        if not resume:
            root = config.training.seed
            seeds = {"root": root, **{name: stream_seed(root, name) for name in STREAMS}}
            run.claim(config.as_yaml(), seeds, command)
        return Trainer(config, run, display, device=device).train(resume=resume, command=command)
