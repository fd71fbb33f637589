"""``ccgym train seeds``: train several seeds, confirm each on fresh draws, export the median one.

Exit status: 0, the record is written; 130, stopped by a signal, and the same command continues; for the rest see
:mod:`ccgym.cli.common`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from ccgym.cli.command import Command
from ccgym.cli.common import STATUS_INTERRUPTED, console, say
from ccgym.cli.options import CONFIG, DEVICE, SET

_DESCRIPTION: Final = """\
Record a learned scheme. Every seed is trained into RUNS/NAME-SEED (a finished run is taken as it
is, one begun is resumed); the best model of each is measured on fresh draws of the paths, next to
the oracle and the baselines; and the seed of median reward there is exported, unless --export names
another.
"""

_EXAMPLES: Final = """\
  ccgym train seeds aurora --seeds 1,2,3,4,5
      five seeds into runs/aurora-1 …; policy, card, curves and seeds into agents/aurora
  ccgym train seeds aurora --seeds 1,2,3 --out mine
      the record elsewhere; ccgym plot curves mine -o curve.png draws the learning curves
  ccgym train seeds aurora --seeds 1,2 --set training.steps=100000 --runs runs/short --out mine
      with settings changed
"""


def _train_seeds(arguments: argparse.Namespace) -> int:
    from ccgym.contrib.recording import record
    from ccgym.training.config import TrainConfig
    from ccgym.training.progress import ProgressDisplay

    config = TrainConfig.load(arguments.config, arguments.overrides)
    made = record(
        config,
        arguments.seeds,
        arguments.runs,
        arguments.out or Path("agents") / config.name,
        say=say,
        display=lambda one: ProgressDisplay(console(), one.training.steps),
        command=_command(arguments),
        device=arguments.device,
        export=arguments.export,
    )
    if made is None:
        console().print("stopped; the same command continues", style="yellow")
        return STATUS_INTERRUPTED
    say(f"policy    {made.exported.onnx}")
    say(f"seeds     {made.seeds_file}")
    say(f"curves    {made.curves_file}")
    return 0


def _command(arguments: argparse.Namespace) -> list[str]:
    """What repeats the record: without the places, which do not matter."""
    words = ["ccgym", "train", "seeds", Path(arguments.config).name.removesuffix(".yaml")]
    words += ["--seeds", ",".join(map(str, sorted(arguments.seeds)))]
    if arguments.export is not None:
        words += ["--export", str(arguments.export)]
    for override in arguments.overrides:
        words += ["--set", override]
    return words


TRAIN_SEEDS: Final = Command(
    "seeds",
    "train several seeds, confirm each, export the median one",
    _train_seeds,
    description=_DESCRIPTION,
    examples=_EXAMPLES,
    options={
        "CONFIG": CONFIG,
        "--seeds 1,2,3 required": "the seeds to train",
        "--runs DIR = runs": "where the run directories are",
        "-o, --out DIR": "the folder of the agent, where the record goes (default: agents/NAME)",
        **SET,
        "--export N": "the seed to export (default: that of median reward); the record says that you chose it",
        **DEVICE,
    },
)
