"""Record a learned scheme: train several seeds, measure them on fresh draws, and export one seed.

A single seed may be lucky, and the best of twenty evaluations is partly luck. So a record contains all seeds, and
the best model of each is measured on fresh draws of the environment's paths, with the oracle and the baselines on the
same draws. The exported seed has the *median* of these rewards, not the largest. The user can choose another
seed, if the median seed fails in a way that the reward hardly shows; the record then notes this choice.

===============  ===================================================================================================
``policy.onnx``  the exported policy
``card.json``    its card
``curves.csv``   every evaluation of every seed
``seeds.json``   results and times of each seed, the machine, and the command that repeats the record
===============  ===================================================================================================

The runs are ordinary run directories. Finished runs are used without change, unfinished runs are resumed.
"""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ccgym.contrib.confirmation import CONFIRMATION_EPISODES, confirm, confirmation_seed
from ccgym.errors import ConfigError, ResultsError, shown
from ccgym.evaluation.directory import differences
from ccgym.files import atomic_write
from ccgym.schemes.policies import POLICY_FILE
from ccgym.training.config import TrainConfig
from ccgym.training.evaluation import ORACLE, Baselines
from ccgym.training.export import Exported, export_policy
from ccgym.training.logs import read_rows, unreadable, wall_clock
from ccgym.training.model import CARD, read_card, set_up_torch
from ccgym.training.run_directory import RunDirectory
from ccgym.training.streams import generators_kept
from ccgym.training.trainer import train

if TYPE_CHECKING:
    from ccgym.training.progress import ProgressDisplay

TARGET_FRACTION: Final = 0.8
"""Fraction of the oracle's reward; the first evaluation that reaches it is recorded."""

CURVE_COLUMNS: Final = ("seed", "step", "mean_reward", "fraction_of_oracle", "wall_s")
"""Columns of ``curves.csv``."""


@dataclass(frozen=True)
class CurvePoint:
    """One evaluation on the held-out draws."""

    step: int
    mean_reward: float
    fraction_of_oracle: float
    wall_s: float
    """Seconds since training began, evaluations and checkpoints included; 0 at step 0."""


@dataclass(frozen=True)
class SeedRecord:
    """The result of one seed."""

    seed: int
    run_dir: Path
    curve: tuple[CurvePoint, ...]
    best_step: int
    """Step of the best evaluation; the model of that step is confirmed and exported."""
    best_fraction: float
    """Fraction of the oracle's reward on the held-out draws; the best model is chosen by it."""
    confirmed_reward: float
    """Mean episode reward of the best model on the fresh draws."""
    confirmed_fraction: float
    """The same reward, as a fraction of the oracle's reward on these draws."""
    weights_sha256: str

    @property
    def steps(self) -> int:
        """Number of decisions at the end."""
        return self.curve[-1].step

    @property
    def wall_s(self) -> float:
        """Duration of the whole training, seconds."""
        return self.curve[-1].wall_s

    @property
    def reached(self) -> CurvePoint | None:
        """The first evaluation with :data:`TARGET_FRACTION` of the oracle's reward."""
        return next((point for point in self.curve if point.fraction_of_oracle >= TARGET_FRACTION), None)

    def as_dict(self) -> dict[str, Any]:
        """Return the record as data for JSON."""
        reached = self.reached
        return {
            "seed": self.seed,
            "steps": self.steps,
            "wall_s": self.wall_s,
            "best_step": self.best_step,
            "best_fraction": self.best_fraction,
            "reached_step": None if reached is None else reached.step,
            "reached_wall_s": None if reached is None else reached.wall_s,
            "confirmed_reward": self.confirmed_reward,
            "confirmed_fraction": self.confirmed_fraction,
            "weights_sha256": self.weights_sha256,
        }

    def line(self) -> str:
        """Return the record as a line of text."""
        reached = self.reached
        when = "never" if reached is None else f"after {reached.wall_s:.0f} s ({reached.step:,} steps)"
        return (
            f"seed {self.seed}: {100 * self.confirmed_fraction:.1f} % of the oracle's reward on fresh draws, "
            f"{100 * self.best_fraction:.1f} % on held-out draws; {100 * TARGET_FRACTION:.0f} % {when}; "
            f"{self.wall_s:.0f} s in all"
        )


@dataclass(frozen=True)
class Recording:
    """The record of all seeds of a configuration."""

    name: str
    seeds: tuple[SeedRecord, ...]
    held_out: dict[str, float]
    """The baselines' fractions of the oracle's reward on the draws of the curves."""
    confirmed: dict[str, float]
    """The baselines' fractions on the fresh draws."""
    chosen: SeedRecord
    """The exported seed: the user's choice, or the median by confirmed reward; for an even number, the lower middle."""
    exported: Exported
    curves_file: Path
    seeds_file: Path


def record(
    config: TrainConfig,
    seeds: Sequence[int],
    runs: Path,
    out: Path,
    *,
    say: Callable[[str], None],
    display: Callable[[TrainConfig], ProgressDisplay],
    command: Sequence[str] = (),
    device: str = "auto",
    episodes: int = CONFIRMATION_EPISODES,
    export: int | None = None,
) -> Recording | None:
    """Train every seed, measure each on fresh draws, export the median seed.

    Args:
        config: The configuration; its ``training.seed`` has no effect.
        seeds: Different seeds, in any order.
        runs: Folder of the run directories ``NAME-SEED``.
        out: The folder of the agent, for the record.
        say: Called with lines about the progress.
        display: Shows the progress of a training.
        command: The command that repeats the record, as a list of words.
        device: The device for training.
        episodes: Number of fresh draws.
        export: The seed to export; by default the seed of median reward.

    Returns:
        The record; None if a signal stopped a training, which the same call resumes.

    Raises:
        ConfigError: An argument is wrong, or the configuration lacks the oracle.
        ResultsError: An existing run was trained with another configuration, or is damaged.
        PlatformError: A file cannot be written.
    """
    ordered = _checked(config, seeds, episodes, export)
    each = {seed: runs / f"{config.name}-{seed}" for seed in ordered}
    for seed, place in each.items():
        training = config.training.model_copy(update={"seed": seed})
        one = config.model_copy(update={"training": training})
        if not _train_one(one, place, say, display, command, device):
            return None
    say(f"confirming on {episodes} fresh draws")
    with generators_kept():
        set_up_torch(config.training.torch_threads)
        schemes, confirmed = confirm(config, each, episodes)
    fresh = Baselines.of(schemes)
    records = tuple(_seed_record(seed, each[seed], confirmed[seed].mean_reward, fresh) for seed in ordered)
    for row in records:
        say(row.line())
    median = median_seed(records)
    chosen = next((row for row in records if row.seed == export), median)
    say(f"exporting seed {chosen.seed}, {'the median' if chosen is median else 'the chosen seed'}")
    exported = export_policy(chosen.run_dir, out / POLICY_FILE)
    made = Recording(
        name=exported.card.name,
        seeds=records,
        held_out=_fractions(Baselines(**read_card(RunDirectory(chosen.run_dir))["baselines"])),
        confirmed=_fractions(fresh),
        chosen=chosen,
        exported=exported,
        curves_file=out / "curves.csv",
        seeds_file=out / "seeds.json",
    )
    summary = {
        "name": made.name,
        "command": shlex.join(command),
        "share": TARGET_FRACTION,
        "held_out": {"episodes": config.evaluation.episodes, "fraction_of_oracle": made.held_out},
        "confirmation": {
            "episodes": episodes,
            "seed": confirmation_seed(config),
            "mean_reward": fresh.rewards,
            "fraction_of_oracle": made.confirmed,
        },
        "exported": {
            "seed": chosen.seed,
            "onnx_sha256": exported.card.onnx_sha256,
            **({} if export is None else {"asked_for": True}),
        },
        "seeds": [row.as_dict() for row in records],
        "machines": _machines(each),
    }
    atomic_write(made.curves_file, curves_text(records))
    atomic_write(made.seeds_file, json.dumps(summary, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return made


def median_seed(records: Sequence[SeedRecord]) -> SeedRecord:
    """Return the record of median confirmed reward; for an even number, the lower of the middle two."""
    ranked = sorted(records, key=lambda one: (one.confirmed_reward, one.seed))
    return ranked[(len(ranked) - 1) // 2]


def curves_text(records: Sequence[SeedRecord]) -> str:
    """Return the text of ``curves.csv``: one row per evaluation, by seed and step."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CURVE_COLUMNS)
    for one in records:
        for point in one.curve:
            writer.writerow(
                [one.seed, point.step, f"{point.mean_reward:.3f}", f"{point.fraction_of_oracle:.5f}", point.wall_s]
            )
    return text.getvalue()


def _checked(config: TrainConfig, seeds: Sequence[int], episodes: int, export: int | None) -> list[int]:
    """Check the arguments, and return the seeds in order."""
    if not seeds or len(set(seeds)) != len(seeds):
        raise ConfigError(
            "wrong-count", f"seeds {shown(list(seeds))}", expected="at least one, each once", where="--seeds"
        )
    if ORACLE not in config.evaluation.baselines:
        raise ConfigError(
            "key-missing",
            f"baselines {', '.join(config.evaluation.baselines) or 'none'}",
            where="evaluation.baselines",
            expected=f"{ORACLE} among them: rewards are recorded as fractions of its reward",
        )
    if episodes < 1:
        raise ConfigError("out-of-range", f"{episodes} episodes", where="episodes", expected="at least one")
    if export is not None and export not in seeds:
        raise ConfigError(
            "unknown-choice", f"seed {export}", expected=f"one of {', '.join(map(str, seeds))}", where="--export"
        )
    return sorted(seeds)


def _train_one(
    config: TrainConfig,
    place: Path,
    say: Callable[[str], None],
    display: Callable[[TrainConfig], ProgressDisplay],
    command: Sequence[str],
    device: str,
) -> bool:
    """Complete one run, and return whether it is complete."""
    run, training = RunDirectory(place), config.training
    begun = run.config.is_file()
    if begun:
        changed = differences(_essence(TrainConfig.load(run.config)), _essence(config))
        if changed:
            raise ResultsError(
                "runs-differ",
                f"the existing run was trained with another configuration ({'; '.join(changed[:6])})",
                where=str(place),
                expected=f"the configuration {config.name} with seed {training.seed}",
                hint="name another folder with --runs, or remove the run",
            )
        if (run.final / CARD).is_file() and read_card(run, "final").get("step", 0) >= training.steps:
            say(f"seed {training.seed}: trained already")
            return True
    say(f"seed {training.seed}: {'resuming' if begun else 'training'}, {training.steps:,} steps")
    with display(config) as shown_on:
        outcome = train(config, place, shown_on, resume=begun, device=device, command=command)
    return not outcome.stopped


def _essence(config: TrainConfig) -> dict[str, Any]:
    """Return the settings that decide the record of a seed."""
    shown_as = {name: getattr(config, name).model_dump(mode="json") for name in ("deployment", "style")}
    return {**config.fixed(), **shown_as, "steps": config.training.steps}


def _fractions(measured: Baselines) -> dict[str, float]:
    """Return the rewards of all other schemes as fractions of the oracle's reward."""
    return {name: _fraction(measured, reward) for name, reward in measured.rewards.items() if name != ORACLE}


def _fraction(measured: Baselines, reward: float) -> float:
    fraction = measured.fraction_of_oracle(reward)
    if fraction is None:
        raise ResultsError(
            "out-of-range",
            f"the oracle's mean reward is {measured.rewards.get(ORACLE, float('nan')):.4g}",
            expected="a reward above zero: other rewards are fractions of it",
            hint="add a term to the reward that the scheme can increase",
        )
    return fraction


# --- Reading runs ----------------------------------------------------------------------------------------------------


def _seed_record(seed: int, place: Path, reward: float, fresh: Baselines) -> SeedRecord:
    run = RunDirectory(place)
    card = read_card(run)
    # Call this first: its error explains missing fractions in the curve.
    best_fraction = _fraction(Baselines(**card["baselines"]), float(card["mean_reward"]))
    return SeedRecord(
        seed=seed,
        run_dir=place,
        curve=read_curve(run),
        best_step=int(card["step"]),
        best_fraction=best_fraction,
        confirmed_reward=reward,
        confirmed_fraction=_fraction(fresh, reward),
        weights_sha256=str(card["weights_sha256"]),
    )


def read_curve(run: RunDirectory) -> tuple[CurvePoint, ...]:
    """Return the evaluations of a run, with their times.

    Raises:
        ResultsError: The run's tables cannot be read.
    """
    clock = wall_clock(run.progress)
    try:
        return tuple(
            CurvePoint(
                step=int(row["step"]),
                mean_reward=float(row["eval/mean_reward"]),
                fraction_of_oracle=float(row["eval/fraction_of_oracle"]),
                wall_s=clock.get(int(row["step"]), 0.0),
            )
            for row in read_rows(run.evaluations)
        )
    except (KeyError, ValueError) as error:
        raise unreadable(run.evaluations, str(error)) from None


def _machines(each: Mapping[int, Path]) -> list[dict[str, Any]]:
    """Return machine, versions and commit, with the seeds that were trained there."""
    found: list[dict[str, Any]] = []
    for seed, place in each.items():
        maker = RunDirectory(place).read_json(place / "versions.json")
        facts = {name: maker.get(name) for name in ("machine", "versions", "git")}
        same = next((one for one in found if one == {"seeds": one["seeds"], **facts}), None)
        if same is None:
            found.append({"seeds": [seed], **facts})
        else:
            same["seeds"].append(seed)
    return found
