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
import shlex
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from typing_extensions import override

from ccgym.errors import ResultsError, SimulationError
from ccgym.evaluation.directory import differences
from ccgym.files import atomic_write, disk_error, settle_directory
from ccgym.training import normalizer as normalizers
from ccgym.training.callbacks import (
    Callback,
    CurriculumCallback,
    EarlierSelfCallback,
    EvaluationCallback,
    RecordsCallback,
)
from ccgym.training.checkpoint import (
    MODEL,
    Checkpoint,
    latest_checkpoint,
    plain,
    remove_leftovers,
    write_checkpoint,
)
from ccgym.training.config import RESUMABLE, TrainConfig
from ccgym.training.environments import Environments, normalized
from ccgym.training.logs import Table, make_logger, quiet_event_writer
from ccgym.training.model import (
    DAMAGE,
    NO_WEIGHTS,
    build_model,
    choose_device,
    extra_state,
    model_bytes,
    recurrent_state,
    set_extra_state,
    set_recurrent_state,
    set_up_torch,
    weights_hash,
    what_is_damaged,
)
from ccgym.training.run_directory import RunDirectory, open_run
from ccgym.training.saved_model import read_card, start_from, write_model
from ccgym.training.stopping import StopRequest
from ccgym.training.streams import STREAMS, capture_generators, restore_generators, stream_seed

if TYPE_CHECKING:
    from ccgym.training.progress import ProgressDisplay

CHECKPOINT_S: Final = 60.0
"""The first update that ends so long after a checkpoint is followed by one, seconds of wall time."""
_RECENT_EPISODES: Final = 100
"""Episodes that ``rollout/ep_rew_mean`` is the mean of."""


@dataclass
class Spent:
    """Where the time of an update went, or that of a whole training."""

    steps: int = 0
    """Decisions taken."""
    total_s: float = 0.0
    """Wall time of rollouts and learning."""
    environment_s: float = 0.0
    """Of that, inside the environments."""
    learning_s: float = 0.0
    """Of that, in gradient steps."""

    def shares(self) -> dict[str, float]:
        """Fractions of the wall time: ``environment``, ``learner``, and ``rest``: choosing actions and copying."""
        total = max(self.total_s, 1e-9)
        environment, learner = self.environment_s / total, self.learning_s / total
        return {"environment": environment, "learner": learner, "rest": max(0.0, 1.0 - environment - learner)}

    def add(self, other: Spent) -> None:
        """Count another update."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


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


class Trainer:
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
        self.resumed = False
        """Whether this run continues from a checkpoint."""
        self.step = 0
        self.updates = 0
        self.seconds = 0.0
        self.spent = Spent()
        """By the latest update."""
        self.spent_in_all = Spent()
        """By all updates, over all runs of a resumed training."""
        self.completed = False
        self.evaluation = EvaluationCallback()
        self.callbacks: tuple[Callback, ...] = (
            CurriculumCallback(), RecordsCallback(), EarlierSelfCallback(), self.evaluation,
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
            checkpoint = self._checkpoint_to_resume()
            self.run.note_start(command)
            atomic_write(self.run.config, self.config.as_yaml())
        self.resumed = checkpoint is not None
        try:
            with quiet_event_writer(), ExitStack() as stack:
                stack.callback(self._close)
                self._build(checkpoint)
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

    def _checkpoint_to_resume(self) -> Checkpoint | None:
        checkpoint, damages = latest_checkpoint(self.run.checkpoints)
        if checkpoint is None:
            if damages:
                raise ResultsError(
                    "checkpoint-damaged",
                    f"no checkpoint can be used: {'; '.join(damages)}",
                    where=str(self.run.checkpoints),
                    expected="a checkpoint as `ccgym train` wrote it",
                    hint=f"start a new run with --config {self.run.config}",
                )
            self.display.notice("killed before the first checkpoint; beginning from step 0")
            return None
        self._refuse_other(checkpoint)
        for damage in damages:
            self.display.notice(f"{damage}; continuing from step {checkpoint.step} instead")
        return checkpoint

    def _refuse_other(self, checkpoint: Checkpoint) -> None:
        """Raise if a checkpoint was trained with another configuration: its weights would be those of neither."""
        trained_with = checkpoint.state.get("configuration")
        if trained_with is None:  # written before checkpoints knew
            return
        changed = differences(trained_with, self.config.fixed())
        if changed:
            place = shlex.quote(str(self.run.path))
            more = f"; and {len(changed) - 6} more" if len(changed) > 6 else ""
            raise ResultsError(
                "resume-changed",
                f"the checkpoint of step {checkpoint.step} was trained with another configuration "
                f"({'; '.join(changed[:6])}{more})",
                where=str(self.run.config),
                expected=f"the same, but for {', '.join(RESUMABLE)}: a resumed run is the same run",
                hint=f"put it back, or let a new run begin with this policy: "
                f"`ccgym train --config {place}/config.yaml --set training.start_from={place}`",
            )

    def _build(self, checkpoint: Checkpoint | None) -> None:
        config, resume_at = self.config, None if checkpoint is None else checkpoint.step
        for directory in (self.run.best, self.run.final):
            settle_directory(directory)
        remove_leftovers(self.run.checkpoints, -1 if resume_at is None else resume_at)
        if checkpoint is not None:
            self.evaluation.restore(checkpoint.state["callbacks"]["evaluation"])
            if not self.evaluation.has_begun:
                resume_at = -1  # rows of step 0 come again
        self.rollouts = self.environments.training()
        self.env = normalized(self.rollouts, config.algorithm)
        self.model = build_model(config.algorithm, self.env, config.training.seed, self.device)
        self.normalizer = self.model.get_vec_normalize_env()
        self.progress_table = Table(self.run.progress, resume_at)
        logger, self.events = make_logger(self.progress_table, self.run.path, resume_at)
        self.model.set_logger(logger)
        # What SB3's learn() sets up; the loop itself is ours, so that it can stop and continue between any two updates.
        self.model.ep_info_buffer = deque(maxlen=_RECENT_EPISODES)
        self.model.ep_success_buffer = deque(maxlen=_RECENT_EPISODES)
        self.model._total_timesteps = config.training.steps
        self._silent = _Silent()
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

    def _close(self) -> None:
        for name in ("events", "env"):
            if hasattr(self, name):
                getattr(self, name).close()

    def begin_episodes(self) -> None:
        """Begin an episode in every environment."""
        self.model._last_obs = self.env.reset()  # type: ignore[assignment]
        self.model._last_episode_starts = np.ones(self.env.num_envs, dtype=bool)

    # --- The loop -----------------------------------------------------------------------------------------------------

    def _loop(self, stop: StopRequest) -> None:
        every = self.config.training.checkpoint_every
        begins = not self.evaluation.has_begun
        for callback in self.callbacks:
            if callback is self.evaluation and not self.resumed:
                self._save()  # measuring the baselines can take minutes
            callback.on_start(self)
        if begins:
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
            self._tell()
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

    def _tell(self) -> None:
        episodes = self.model.ep_info_buffer or ()
        reward = float(np.mean([episode["r"] for episode in episodes])) if episodes else None
        self.display.update(self.step, reward, self.spent.steps / max(self.spent.total_s, 1e-9))

    # --- Checkpoints --------------------------------------------------------------------------------------------------

    def _save(self) -> None:
        self.events.flush()
        model = self.model
        state = {
            "configuration": self.config.fixed(),
            "updates": self.updates,
            "seconds": self.seconds,
            "spent": vars(self.spent_in_all),
            "gradient_updates": model._n_updates,
            "progress_remaining": model._current_progress_remaining,
            "observations": plain(model._last_obs),
            "starts": plain(model._last_episode_starts),
            "recurrent": recurrent_state(model),
            "learner": extra_state(model),
            "episodes": [(float(one["r"]), int(one["l"])) for one in model.ep_info_buffer or ()],
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
        except NO_WEIGHTS as error:
            raise ResultsError(
                "checkpoint-damaged",
                what_is_damaged(error),
                where=str(self.run.checkpoints / f"step_{checkpoint.step}" / MODEL),
                expected="weights as `ccgym train` wrote them",
                hint="remove this checkpoint, and the one before it is continued",
            ) from None
        except DAMAGE as error:
            raise ResultsError(
                "resume-changed",
                f"the checkpoint of step {checkpoint.step} does not fit the configuration: {what_is_damaged(error)}",
                where=str(self.run.path),
                expected="the networks that config.yaml describes",
                hint="config.yaml has been changed since; start a new run with it",
            ) from None
        self.step = model.num_timesteps = checkpoint.step
        self.updates, self.seconds = state["updates"], state["seconds"]
        self.spent_in_all = Spent(**state.get("spent", {}))
        model._n_updates = state["gradient_updates"]
        model._current_progress_remaining = state["progress_remaining"]
        assert model.ep_info_buffer is not None
        model.ep_info_buffer.extend({"r": reward, "l": length} for reward, length in state["episodes"])
        seen: Any = self.rollouts.restore(state["environments"])
        normalizers.restore(self.normalizer, state["normalizer"])
        model._last_obs = known = state["observations"].numpy().copy()
        model._last_episode_starts = state["starts"].numpy().copy()
        set_recurrent_state(model, state["recurrent"])
        set_extra_state(model, state.get("learner", {}))
        if seen is not None and self.normalizer is not None:
            seen = self.normalizer.normalize_obs(seen)
        if seen is None:
            self.display.notice("episodes on real paths do not come back; new ones begin")
        elif not np.array_equal(seen, known):
            raise ResultsError(
                "resume-changed",
                "the environments no longer do what they did when the checkpoint was written",
                where=str(self.run.path),
                expected="the same simulator, configuration and traces",
                hint="resume with the version of ccgym in versions.json, or start a new run",
            )
        # Last: nothing after this may draw.
        restore_generators(state["generators"])


class _Silent(BaseCallback):
    """SB3 wants a callback during rollouts; this one does nothing."""

    @override
    def _on_step(self) -> bool:
        return True


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
