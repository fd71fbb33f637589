"""``ccgym train``: train a policy from a YAML file, watch it in TensorBoard, resume it, export it.

Only arguments are read here; the work is done by :mod:`ccgym.training`, which is imported when needed, so that
``--help`` is quick and does without torch.

Exit status: 0, trained to the end; 130, stopped by a signal and ready to be resumed; for the rest see
:mod:`ccgym.cli.common`.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ccgym.cli.common import (
    STATUS_FAILED_RUN,
    STATUS_INTERRUPTED,
    HelpFormatter,
    Parser,
    add_cluster,
    add_device,
    add_overrides,
    connected,
    console,
    print_table,
    run,
    set_up_logging,
)
from ccgym.errors import ConfigError, shown
from ccgym.invocation import command

if TYPE_CHECKING:
    from rich.console import Console

    from ccgym.training.config import TrainConfig
    from ccgym.training.trainer import Outcome

DESCRIPTION: Final = """\
Train a policy. One YAML file says everything: the agent (what it sees, does and is rewarded
for), the paths, the algorithm, how long. While it trains, the policy is measured on held-out
paths, next to the oracle, BBR and Cubic. Killed at any moment, the run continues with --resume to
the same result, byte for byte; the same seed gives the same policy.
"""

EXAMPLES: Final = """\
examples:
  ccgym train --config aurora.yaml
      train, in a new directory runs/aurora-1-1, what comes with ccgym as aurora.yaml
  tensorboard --logdir runs
      watch it and all other runs
  ccgym train --config aurora --seed 3 --steps 1000000
      another seed, fewer steps
  ccgym train --config aurora --set algorithm.learning_rate=3e-4 --set training.time_limit=5min
      any setting of the file, by its path
  ccgym train --resume runs/aurora-1-1
      continue where it was killed or stopped
  ccgym train --resume runs/aurora-1-1 --steps 8000000
      continue beyond its end
  ccgym train --config aurora --cluster auto --seeds 1,2,3 --grid algorithm.gamma=0.9,0.99
      six trainings on a Ray cluster, in runs/aurora-algorithm.gamma=0.9-1 … (docs/cluster.md)
  ccgym evaluate --trace 77.72mbps --schemes runs/aurora-1-1,bbr,cubic
      the trained policy as one scheme among others

exit status: 0 fine; 2 the command, the configuration or the machine is wrong; 130 stopped by
control-C or SIGTERM after the update under way, ready for --resume
"""

_SHORT: Final = {"seed": "training.seed", "steps": "training.steps", "threads": "training.simulator_threads"}
"""Settings that have an option of their own."""


def parser() -> argparse.ArgumentParser:
    """The command line of ``ccgym train``."""
    made = Parser(
        prog="ccgym train", description=DESCRIPTION, epilog=EXAMPLES, formatter_class=HelpFormatter, allow_abbrev=False
    )
    what = made.add_argument_group("what to train (one of the two)")
    what.add_argument(
        "--config",
        metavar="FILE|NAME",
        help="a YAML file, or the name of one in ./configs, or of one that comes with ccgym: aurora, indigo, eagle …",
    )
    what.add_argument("--resume", metavar="DIRECTORY", help="continue the run in this directory")
    how = made.add_argument_group("settings over those of the file")
    add_overrides(how)
    how.add_argument("--seed", type=int, metavar="N", help="root of every random stream (training.seed)")
    how.add_argument("--steps", type=int, metavar="N", help="decisions to train for (training.steps)")
    how.add_argument(
        "--threads",
        type=int,
        metavar="N",
        help="threads of the simulators, by default one per processor; results do not depend on it",
    )
    add_device(how)
    many = made.add_argument_group("several trainings, on a cluster")
    add_cluster(many, "train")
    many.add_argument(
        "--seeds", metavar="1,2,3", help="seeds to train, as `ccgym record` does here (default: that of the file)"
    )
    many.add_argument(
        "--grid",
        action="append",
        default=[],
        metavar="KEY=A,B",
        help="a setting and its values, separated by commas; given several times, every combination is trained",
    )
    many.add_argument(
        "--runs",
        type=Path,
        default=Path("runs"),
        metavar="DIRECTORY",
        help="where the run directories are, on a disk that all machines share (default: runs)",
    )
    out = made.add_argument_group("output")
    out.add_argument(
        "--run-dir", metavar="DIRECTORY", help="directory of the run (default: runs/<name>-<seed>-<n>, a new one)"
    )
    out.add_argument("--no-export", action="store_true", help="do not export the best policy at the end")
    out.add_argument("-v", "--verbose", action="count", default=0, help="say more; twice for everything")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``ccgym train`` and return its exit status; see :mod:`ccgym.cli.common`."""
    words = list(sys.argv[1:] if argv is None else argv)
    return run(lambda: _train(parser().parse_args(words), words))


def _train(arguments: argparse.Namespace, words: Sequence[str]) -> int:
    if (arguments.config is None) == (arguments.resume is None):
        given = "both --config and --resume" if arguments.config is not None else "neither --config nor --resume"
        raise ConfigError("exactly-one", given, expected="one of them", hint="ccgym train --config aurora")
    if arguments.resume is not None and arguments.run_dir is not None:
        raise ConfigError(
            "options-conflict",
            "--resume with --run-dir",
            expected="--resume DIRECTORY alone: the run stays where it is",
        )
    if arguments.cluster is not None:
        return _train_on_cluster(arguments)
    if arguments.seeds is not None or arguments.grid:
        raise ConfigError(
            "option-needed",
            f"{'--seeds' if arguments.seeds is not None else '--grid'} without --cluster",
            expected="both, or --seed N",
            hint="`ccgym record CONFIG --seeds 1,2,3` trains several seeds on this machine, one after the other",
        )
    set_up_logging(arguments.verbose)
    from ccgym.training.progress import ProgressDisplay
    from ccgym.training.run_directory import new_run_directory
    from ccgym.training.trainer import train

    shown_on = console()
    config = _config(arguments)
    resume = arguments.resume is not None
    if resume:
        directory = Path(arguments.resume)
    elif arguments.run_dir is not None:
        directory = Path(arguments.run_dir)
    else:
        directory = new_run_directory(config.name, config.training.seed)
    algorithm, training = config.algorithm, config.training
    shown_on.print(
        f"{'resuming' if resume else 'training'} {config.name}: {algorithm.name}, {training.steps:,} steps in "
        f"{algorithm.n_envs} environments, seed {training.seed}, into {directory}",
        soft_wrap=True,
    )
    for note in _about(config):
        shown_on.print(note, style="dim", soft_wrap=True)
    with ProgressDisplay(shown_on, training.steps) as display:
        outcome = train(
            config,
            directory,
            display,
            resume=resume,
            device=arguments.device,
            command=[*command("train").split(), *words],
        )
    if outcome.stopped:
        shown_on.print(f"\nstopped after {outcome.step:,} steps; to continue:", style="yellow")
        shown_on.print(f"  {command('train')} --resume {shlex.quote(str(directory))}", soft_wrap=True)
        return STATUS_INTERRUPTED
    _conclude(outcome, config, shown_on)
    if not arguments.no_export:
        from ccgym.training.export import export_policy

        exported = export_policy(outcome.run_dir)
        shown_on.print(f"policy     {exported.onnx}  (does what torch does: checked)", soft_wrap=True)
    _what_next(outcome, shown_on)
    return 0


def _about(config: TrainConfig) -> list[str]:
    """What one should know of a configuration before hours of training: what is not its own."""
    from ccgym.training.export import policy_style

    notes = [config.inherited] if config.inherited else []
    if config.style.label and policy_style(config, config.name.lower()) != config.style:
        notes.append(f"the label {config.style.label} is another scheme's: this policy will be called {config.name}")
    return notes


def _train_on_cluster(arguments: argparse.Namespace) -> int:
    """Train every seed with every setting of the grid on a cluster, and show what came out."""
    for name in ("resume", "run_dir", "seed"):
        if getattr(arguments, name) is not None:
            raise ConfigError(
                "options-conflict",
                f"--{name.replace('_', '-')} together with --cluster",
                expected="--config with --seeds: what was begun in their directories is resumed",
            )
    from ccgym.contrib.population import members, train_all

    try:
        seeds = [1] if arguments.seeds is None else [int(word) for word in arguments.seeds.split(",")]
    except ValueError:
        raise ConfigError(
            "text-malformed", shown(arguments.seeds), where="--seeds", expected="whole numbers, as in 1,2,3"
        ) from None
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
    asked = members(arguments.config, _overrides(arguments), seeds, grid, arguments.runs)
    console().print(f"{len(asked)} trainings into {arguments.runs}; how they go: ccgym watch {arguments.runs}")
    with connected(arguments):
        failures = train_all(asked, arguments.device)
    rows = []
    for one in asked:
        card = one.card or {}
        rows.append(
            (one.changed, one.directory.name, f"{card.get('step', 0):,}", str(card.get("weights_sha256", ""))[:16])
        )
    print_table(("training", "directory", "steps", "weights"), rows, right=("steps",))
    for failure in failures:
        console().print(f"failed: {failure}", style="bold red", soft_wrap=True)
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
                hint=f"start a new one with --config {open_run(Path(arguments.resume)).config} and your settings",
            )
    return TrainConfig.load(open_run(Path(arguments.resume)).config, overrides)


def _overrides(arguments: argparse.Namespace) -> list[str]:
    """All settings over those of the file."""
    given = {key: getattr(arguments, option) for option, key in _SHORT.items()}
    return [*arguments.overrides, *(f"{key}={value}" for key, value in given.items() if value is not None)]


def _conclude(outcome: Outcome, config: TrainConfig, shown_on: Console) -> None:
    shown_on.print(f"\n{outcome.step:,} steps in {outcome.seconds:.0f} s, seed {config.training.seed}", soft_wrap=True)
    shares = ", ".join(f"{name} {100 * share:.0f} %" for name, share in outcome.shares.items())
    shown_on.print(f"time       {shares}", soft_wrap=True)
    if outcome.best_reward is not None:
        share = "" if outcome.best_fraction is None else f", {100 * outcome.best_fraction:.1f} % of the oracle's"
        shown_on.print(
            f"best       mean episode reward {outcome.best_reward:.1f}{share}, at step {outcome.best_step:,}",
            style="bold",
            soft_wrap=True,
        )
    shown_on.print(f"weights    {outcome.weights_sha256}  (same seed, machine and versions: same hash)", soft_wrap=True)


def _what_next(outcome: Outcome, shown_on: Console) -> None:
    directory = shlex.quote(str(outcome.run_dir))
    for name, text in (
        ("run", directory),
        ("curve", f"{directory}/evaluations.csv"),
        ("watch", f"tensorboard --logdir {directory}"),
        ("evaluate", f"{command('evaluate')} --trace 77.72mbps --schemes {directory},bbr,cubic"),
    ):
        shown_on.print(f"{name:<10} {text}", soft_wrap=True)
