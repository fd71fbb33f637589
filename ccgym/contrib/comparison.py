"""Compare trainings: the best models of several configurations and seeds, by the agent's reward on the same draws.

The result of a configuration is the mean over its seeds. Its interval shows the variation of this mean with other
seeds and paths: both are drawn again, with replacement, thousands of times (the bootstrap). All configurations get
the same paths, since a hard path is hard for all. So the gain of one configuration over another is resampled as a
difference on the same paths, which has a much narrower interval than the two means.

The share of the gap to the oracle that this gain closes is a ratio. It is meaningful only if the gap is clearly above
zero: with a denominator near zero, any share is possible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ccgym.contrib.confirmation import CONFIRMATION_EPISODES, confirm, confirmation_seed
from ccgym.errors import ConfigError, ResultsError
from ccgym.evaluation.bootstrap import RESAMPLES, Interval, interval
from ccgym.evaluation.observer import Observer
from ccgym.training.config import TrainConfig
from ccgym.training.evaluation import ORACLE
from ccgym.training.model import read_card, set_up_torch
from ccgym.training.run_directory import open_run
from ccgym.training.streams import generators_kept, stream_seed

Floats = npt.NDArray[np.float64]

COLUMNS: Final = ("name", "seeds", "steps", "mean", "mean_low", "mean_high", "gain", "gain_low", "gain_high", "closed")
"""Columns of the table as CSV."""


@dataclass(frozen=True)
class Compared:
    """Result of a configuration or a scheme."""

    name: str
    seeds: tuple[int, ...]
    """Seeds of its runs; empty for a scheme."""
    steps: int
    """Training steps of each run; 0 for a scheme."""
    rewards: Floats
    """Mean episode rewards by run and draw; one row for a scheme."""
    mean: Interval
    """Mean over runs and draws, with its interval."""
    gain: Interval | None
    """Mean reward minus the reference's, on the same draws; None for the reference itself."""
    closed: float | None
    """The gain as a share of the oracle's gain; None for reference and oracle, and if the oracle's may be zero."""

    def row(self) -> dict[str, Any]:
        """Return the values of :data:`COLUMNS`; the seeds with the mean of each seed."""
        each = "; ".join(f"{seed}: {row.mean():.2f}" for seed, row in zip(self.seeds, self.rewards, strict=False))
        numbers = self.mean.columns("mean")
        if self.gain is not None:
            numbers |= self.gain.columns("gain")
        if self.closed is not None:
            numbers["closed"] = self.closed
        texts = {name: f"{value:.4f}" for name, value in numbers.items()}
        return {"name": self.name, "seeds": each, "steps": self.steps or "", **texts}


def compare(
    runs: Sequence[Path],
    reference: str | None = None,
    episodes: int = CONFIRMATION_EPISODES,
    observer: Observer | None = None,
) -> list[Compared]:
    """Measure runs and baselines on the same fresh draws.

    Args:
        runs: Run directories; runs with the same configuration are its seeds.
        reference: The configuration to compute gains over; by default the first run's.
        episodes: Number of draws.
        observer: Receives the progress.

    Returns:
        Configurations by mean reward, the best first, followed by the baselines.

    Raises:
        ConfigError: There is no run, a run does not exist, or the reference is not one of the configurations.
        ResultsError: The runs cannot be compared: they have different agents, or different held-out paths.
    """
    if not runs:
        raise ConfigError("argument-missing", "no runs", expected="at least one run directory")
    configs = {place: TrainConfig.load(open_run(place).config) for place in runs}
    first = configs[runs[0]]
    for place, config in configs.items():
        _require_comparable(place, config, first)
    names = list(dict.fromkeys(config.name for config in configs.values()))
    reference = reference or names[0]
    if reference not in names:
        raise ConfigError("unknown-name", reference, where="--over", expected=f"one of {', '.join(names)}")
    # Check before minutes of measurement: an unfinished training has no final model.
    steps = {config.name: int(read_card(open_run(place), "final").get("step", 0)) for place, config in configs.items()}
    with generators_kept():
        set_up_torch(first.training.torch_threads)
        schemes, results = confirm(first, {place: place for place in runs}, episodes, observer)
    rewards = {
        name: np.stack([results[place].rewards for place, config in configs.items() if config.name == name])
        for name in names
    } | {scheme: result.rewards[None, :] for scheme, result in schemes.items()}
    means = _resampled(rewards, stream_seed(confirmation_seed(first), "bootstrap"))
    seeds = {name: tuple(config.training.seed for config in configs.values() if config.name == name) for name in names}
    gains = _gains(rewards, means, reference)

    def one(name: str) -> Compared:
        mean = interval(float(rewards[name].mean()), means[name])
        return Compared(name, seeds.get(name, ()), steps.get(name, 0), rewards[name], mean, *gains[name])

    by_reward = sorted(names, key=lambda name: -float(rewards[name].mean()))
    return [one(name) for name in (*by_reward, *schemes)]


def _require_comparable(place: Path, config: TrainConfig, first: TrainConfig) -> None:
    same: dict[str, Callable[[TrainConfig], object]] = {
        "agent": lambda one: {name: part for name, part in one.agent.native().items() if name != "name"},
        "draws": lambda one: (one.evaluation.seed, one.evaluation.per_decision, one.environment.episode),
        "held-out paths": lambda one: one.held_out_paths().model_dump(mode="json"),
    }
    for what, of in same.items():
        if of(config) != of(first):
            raise ResultsError(
                "runs-differ",
                f"another {what} than {first.name}",
                where=str(place),
                expected="runs that differ only in training",
            )


def _resampled(rewards: dict[str, Floats], seed: int) -> dict[str, Floats]:
    """Return means over resampled draws and seeds, by name, with the same draws for all."""
    rng = np.random.default_rng(seed)
    count = next(iter(rewards.values())).shape[1]
    draws = rng.integers(count, size=(RESAMPLES, count))
    found = {}
    for name, table in rewards.items():
        chosen = rng.integers(len(table), size=(RESAMPLES, len(table)))
        found[name] = np.array([table[rows][:, paths].mean() for rows, paths in zip(chosen, draws, strict=True)])
    return found


def _gains(
    rewards: dict[str, Floats], means: dict[str, Floats], reference: str
) -> dict[str, tuple[Interval | None, float | None]]:
    """Return ``gain`` and ``closed`` of :class:`Compared`, by name, from rewards and their resampled means."""
    gains = {
        name: interval(float(table.mean() - rewards[reference].mean()), means[name] - means[reference])
        for name, table in rewards.items()
        if name != reference
    }
    gap = gains.get(ORACLE)
    if gap is not None and gap.low <= 0:
        gap = None
    found: dict[str, tuple[Interval | None, float | None]] = {reference: (None, None)}
    for name, gain in gains.items():
        found[name] = gain, gain.mean / gap.mean if gap is not None and name != ORACLE else None
    return found
