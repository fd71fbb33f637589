"""The training loop: rollout, update, evaluation, checkpoint; from the beginning, or from where a killed run stopped.

A run that was killed at any time and resumed gives the same weights and the same curve as an uninterrupted run. For
this, a checkpoint contains all data that the next update needs: policy, optimizer, normalizer, counters, all random
generators, a recurrent policy's state, and the environments. Environments are not stored but repeated: the checkpoint
has each environment's random stream before its current episode, and the decisions since. The simulator gives the same
results from the same seed; restoring takes as long as the longest unfinished episode.

Only clock measurements differ: columns and tags ``time/`` and ``sys/``.
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
"""Wall time after a checkpoint, seconds: the first update that ends later is followed by a checkpoint."""
_RECENT_EPISODES: Final = 100
"""Number of episodes in the mean ``rollout/ep_rew_mean``."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run."""

    run_dir: Path
    step: int
    """Number of decisions."""
    stopped: bool
    """Whether a signal ended the run early; then it can be resumed."""
    seconds: float
    """Wall time of training, over all runs of a resumed training, seconds."""
    shares: dict[str, float]
    """Fractions of the updates' time: see :meth:`Spent.shares`."""
    weights_sha256: str
    best_step: int | None
    best_reward: float | None
    """Mean episode reward of the best model."""
    best_fraction: float | None
    """This reward as a fraction of the oracle's; None if the oracle's is not the maximum."""


class Trainer(Session):
    """One run of training.

    Args:
        config: Configuration of the training.
        run: Run directory; its lock is held.
        display: Display of the progress.
        device: See :func:`ccgym.training.model.choose_device`.
        environments: Factory of the environments; by default the configuration's.
        clock: Function that returns seconds of wall time; it only decides when checkpoints are written.
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
        """Time of all updates, over all runs of a resumed training."""
        self.completed = False
        self.evaluation = EvaluationCallback()
        self.callbacks: tuple[Callback, ...] = (
            CurriculumCallback(), RecordsCallback(), PastPoliciesCallback(), self.evaluation,
        )  # fmt: skip

    def train(self, *, resume: bool, command: Sequence[str] = ()) -> Outcome:
        """Train to the end, to the time limit, or until a signal.

        Args:
            resume: Whether to continue from the newest intact checkpoint.
            command: The command line of a resumption, for the record.

        Raises:
            ResultsError: There is no checkpoint, or it was trained with another configuration.
            PlatformError: The disk is full; earlier checkpoints stay unchanged.
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
            # Tables and event files are written during training, by ccgym and by TensorBoard.
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
                resume_at = -1  # rows of step 0 are repeated
        self.rollouts = self.environments.training()
        self.env = normalized(self.rollouts, config.algorithm)
        stack.callback(self.env.close)
        self.model = build_model(config.algorithm, self.env, config.training.seed, self.device)
        self.normalizer = self.model.get_vec_normalize_env()
        logger, self.events = make_logger(Table(self.run.progress, resume_at), self.run.path, resume_at)
        stack.callback(self.events.close)
        self.model.set_logger(logger)
        # The setup of SB3's learn(); the loop is ccgym's, so that it can stop and continue between any two updates.
        self.model.ep_info_buffer = deque(maxlen=_RECENT_EPISODES)
        self.model.ep_success_buffer = deque(maxlen=_RECENT_EPISODES)
        self.model._total_timesteps = config.training.steps
        self._silent = CallbackList([])  # SB3's rollouts call it
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
        """Return whether all steps are done, or the time is up."""
        training = self.config.training
        limit = math.inf if training.time_limit is None else training.time_limit / 1e9
        return self.step >= training.steps or self.seconds >= limit

    def _update(self) -> None:
        """Make decisions with the current policy, then learn from them."""
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
            # Errors of torch's distributions for infinite, missing or zero parameters.
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
        """Return the error of diverged weights, for which no checkpoint is written."""
        return SimulationError(
            "learning-diverged",
            f"learning has diverged after {self.step:,} steps: the policy's weights are not finite",
            where=str(self.run.path),
            expected="finite weights",
            hint="lower algorithm.learning_rate or algorithm.max_grad_norm; the last checkpoint is still valid",
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
                expected="weights that `ccgym train` wrote",
                hint="remove this checkpoint to continue from the one before it",
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
            self.display.notice("episodes on real paths cannot be restored; new episodes begin")
        elif not np.array_equal(seen, model._last_obs):  # type: ignore[arg-type]
            raise ResultsError(
                "resume-changed",
                "the environments behave differently than when the checkpoint was written",
                where=str(self.run.path),
                expected="the same simulator, configuration and traces",
                hint="resume with the version of ccgym in versions.json, or start a new run",
            )
        # The last step: nothing after this may use the generators.
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
        config: Configuration of the training; for a resumed run, the configuration in the directory.
        run_dir: The run directory.
        display: Display of the progress.
        resume: Whether to continue the run in the directory.
        device: ``auto``, ``cpu``, ``cuda`` …
        command: The command line, for the record.

    Raises:
        ConfigError: The device, or something in the configuration, cannot be used.
        ResultsError: Another process trains there, a run exists already, or there is nothing to resume.
        PlatformError: The disk is full or cannot be written; earlier checkpoints stay unchanged.
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
