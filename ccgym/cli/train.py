"""``ccgym train``: train a policy from a YAML file, watch the training in TensorBoard, resume it, export the policy.

Exit status: 0, training is complete; 130, stopped by a signal and ready to be resumed; for other values see
:mod:`ccgym.cli.common`.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ccgym.cli.command import Command, Rule
from ccgym.cli.common import STATUS_FAILED_RUN, STATUS_INTERRUPTED, console, print_table
from ccgym.cli.experiments import show_failures
from ccgym.cli.export import EXPORT
from ccgym.cli.options import CONFIG, DEVICE, SET, cluster, connected
from ccgym.cli.train_seeds import TRAIN_SEEDS
from ccgym.errors import ConfigError, shown
from ccgym.invocation import command

if TYPE_CHECKING:
    from rich.console import Console

    from ccgym.training.config import TrainConfig
    from ccgym.training.trainer import Outcome

_DESCRIPTION: Final = """\
Train a policy. One YAML file defines the agent (observation, action, reward), the paths, the
algorithm and the number of steps. During training, the policy is measured on held-out paths,
next to the oracle, BBR and Cubic. After an interruption, --resume continues to the same result,
byte for byte; the same seed gives the same policy.
"""

_EXAMPLES: Final = """\
  ccgym train --config aurora.yaml
      train with ccgym's aurora.yaml, in a new directory runs/aurora-1-1
  tensorboard --logdir runs
      watch this run and all other runs
  ccgym train --config aurora --seed 3 --steps 1000000
      another seed, fewer steps
  ccgym train --config aurora --set algorithm.learning_rate=3e-4 --set training.time_limit=5min
      change any setting of the file, by its path
  ccgym train --resume runs/aurora-1-1
      continue after it was killed or stopped
  ccgym train --resume runs/aurora-1-1 --steps 8000000
      continue beyond its end
  ccgym train --config aurora --cluster auto --seeds 1,2,3 --grid algorithm.gamma=0.9,0.99
      six trainings on a Ray cluster, in runs/aurora-algorithm.gamma=0.9-1 … (docs/guides/cluster.md)
  ccgym evaluate --trace 77.72mbps --schemes runs/aurora-1-1,bbr,cubic
      the trained policy as one scheme among others

exit status: 0 success; 2 error in the command, the configuration or the machine; 130 stopped by
Ctrl-C or SIGTERM after the current update, ready for --resume
"""

_SHORT: Final = {"seed": "training.seed", "steps": "training.steps", "threads": "training.simulator_threads"}
"""Settings with a separate option."""


def _train(arguments: argparse.Namespace) -> int:
    if (arguments.config is None) == (arguments.resume is None):
        given = "both --config and --resume" if arguments.config is not None else "neither --config nor --resume"
        raise ConfigError("exactly-one", given, expected="one of them", hint="ccgym train --config aurora")
    if arguments.cluster is not None:
        return _train_on_cluster(arguments)
    from ccgym.training.progress import ProgressDisplay
    from ccgym.training.run_directory import new_run_directory
    from ccgym.training.trainer import train

    shown_on, resume = console(), arguments.resume is not None
    config = _config(arguments)
    directory = arguments.resume or arguments.run_dir or new_run_directory(config.name, config.training.seed)
    algorithm, training = config.algorithm, config.training
    shown_on.print(
        f"{'resuming' if resume else 'training'} {config.name}: {algorithm.name}, {training.steps:,} steps in "
        f"{algorithm.n_envs} environments, seed {training.seed}, into {directory}",
        soft_wrap=True,
    )
    for note in _about(config):
        shown_on.print(note, style="dim", soft_wrap=True)
    how = {"resume": resume, "device": arguments.device, "command": list(arguments.typed)}
    with ProgressDisplay(shown_on, training.steps) as display:
        outcome = train(config, directory, display, **how)
    if outcome.stopped:
        shown_on.print(f"\nstopped after {outcome.step:,} steps; to continue:", style="yellow")
        shown_on.print(f"  {command('train')} --resume {shlex.quote(str(directory))}", soft_wrap=True)
        return STATUS_INTERRUPTED
    _conclude(outcome, config, shown_on)
    if not arguments.no_export:
        from ccgym.training.export import export_policy

        exported = export_policy(outcome.run_dir)
        shown_on.print(f"policy     {exported.onnx}  (checked: decides as torch does)", soft_wrap=True)
    _what_next(outcome, shown_on)
    return 0


def _about(config: TrainConfig) -> list[str]:
    """Return notes about a configuration for the user to read before a long training."""
    from ccgym.training.export import policy_style

    notes = [config.inherited] if config.inherited else []
    if config.style.label and policy_style(config, config.name.lower()) != config.style:
        notes.append(f"the label {config.style.label} belongs to another scheme: this policy is named {config.name}")
    return notes


def _train_on_cluster(arguments: argparse.Namespace) -> int:
    """Train every seed with every setting of the grid on a cluster, and show the results."""
    from ccgym.contrib.population import members, train_all

    grid: dict[str, list[str]] = {}
    for text in arguments.grid:
        key, equals, values = text.partition("=")
        if not equals or not all(values.split(",")) or key in grid:
            raise ConfigError(
                "text-malformed",
                shown(text),
                where="--grid",
                expected="KEY=A,B, as in algorithm.gamma=0.9,0.99, once each",
            )
        grid[key] = values.split(",")
    asked = members(arguments.config, _overrides(arguments), arguments.seeds or [1], grid, arguments.runs)
    console().print(f"{len(asked)} trainings into {arguments.runs}; show progress: ccgym report watch {arguments.runs}")
    with connected(arguments):
        failures = train_all(asked, arguments.device)
    rows = []
    for one in asked:
        card = one.card or {}
        rows.append(
            (one.changed, one.directory.name, f"{card.get('step', 0):,}", str(card.get("weights_sha256", ""))[:16])
        )
    print_table(("training", "directory", "steps", "weights"), rows, right=("steps",))
    show_failures(failures, console())
    return STATUS_FAILED_RUN if failures or any(one.card is None for one in asked) else 0


def _config(arguments: argparse.Namespace) -> TrainConfig:
    from ccgym.training.config import RESUMABLE, TrainConfig
    from ccgym.training.run_directory import open_run

    overrides = _overrides(arguments)
    if arguments.resume is None:
        return TrainConfig.load(arguments.config, overrides)
    for override in overrides:
        key = override.partition("=")[0].strip()
        if key not in RESUMABLE and key.partition(".")[0] not in RESUMABLE:
            raise ConfigError(
                "resume-changed",
                f"{shown(key)} with --resume",
                expected=f"only {', '.join(RESUMABLE)}: a resumed run is the same run",
                hint=f"start a new run with --config {open_run(arguments.resume).config} and your settings",
            )
    return TrainConfig.load(open_run(arguments.resume).config, overrides)


def _overrides(arguments: argparse.Namespace) -> list[str]:
    """Return all settings that replace settings of the file."""
    given = {key: getattr(arguments, option) for option, key in _SHORT.items()}
    return [*arguments.overrides, *(f"{key}={value}" for key, value in given.items() if value is not None)]


def _conclude(outcome: Outcome, config: TrainConfig, shown_on: Console) -> None:
    shown_on.print(f"\n{outcome.step:,} steps in {outcome.seconds:.0f} s, seed {config.training.seed}", soft_wrap=True)
    rows = {"time": ", ".join(f"{name} {100 * share:.0f} %" for name, share in outcome.shares.items())}
    if outcome.best_reward is not None:
        share = "" if outcome.best_fraction is None else f", {100 * outcome.best_fraction:.1f} % of the oracle's"
        rows["best"] = f"mean episode reward {outcome.best_reward:.1f}{share}, at step {outcome.best_step:,}"
    _show({**rows, "weights": f"{outcome.weights_sha256}  (same seed, machine and versions: same hash)"}, shown_on)


def _what_next(outcome: Outcome, shown_on: Console) -> None:
    directory = shlex.quote(str(outcome.run_dir))
    evaluate = f"{command('evaluate')} --trace 77.72mbps --schemes {directory},bbr,cubic"
    rows = {"run": directory, "curve": f"{directory}/evaluations.csv", "watch": f"tensorboard --logdir {directory}"}
    _show({**rows, "evaluate": evaluate}, shown_on)


def _show(rows: Mapping[str, str], shown_on: Console) -> None:
    for name, text in rows.items():
        shown_on.print(f"{name:<10} {text}", style="bold" if name == "best" else None, soft_wrap=True)


COMMAND: Final = Command(
    "train",
    run=_train,
    description=_DESCRIPTION,
    examples=_EXAMPLES,
    commands=(TRAIN_SEEDS, EXPORT),
    rules=(
        Rule("run_dir", "resume", "a resumed run keeps its directory"),
        Rule("resume run_dir seed", "cluster", "use --config with --seeds: trainings in their directories are resumed"),
        Rule("seeds grid", "cluster", "`ccgym train seeds CONFIG --seeds 1,2,3` trains several seeds here", needs=True),
    ),
    options={
        "# what to train (one of the two)": "",
        "--config FILE|NAME": CONFIG,
        "--resume DIRECTORY": "continue the run in this directory",
        "# settings that replace settings of the file": "",
        **SET,
        "--seed N": "root of every random stream (training.seed)",
        "--steps N": "decisions to train for (training.steps)",
        "--threads N": "threads of the simulators, by default one per processor; results do not depend on it",
        **DEVICE,
        "# several trainings, on a cluster": "",
        **cluster("train"),
        "--seeds 1,2,3": "seeds to train, like `ccgym train seeds` without a cluster (default: the seed in the file)",
        "--grid KEY=A,B...": "a setting and its values, separated by commas; given several times, every combination "
        "is trained",
        "--runs DIRECTORY = runs": "folder of the run directories, on a disk that all machines share",
        "# output": "",
        "--run-dir DIRECTORY": "directory of the run (default: a new directory runs/<name>-<seed>-<n>)",
        "--no-export": "do not export the best policy at the end",
    },
)
