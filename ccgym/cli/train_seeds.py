"""``ccgym train seeds``: train several seeds, measure each on fresh draws, export the seed of median reward.

Exit status: 0, the record is written; 130, stopped by a signal, and the same command continues; for other values see
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
Train and record a learned scheme. Every seed is trained in RUNS/NAME-SEED (a finished run is used
without change, an unfinished run is resumed). The best model of each seed is measured on fresh
draws of the paths, next to the oracle and the baselines. The seed with the median reward is
exported, unless --export names another seed.
"""

_EXAMPLES: Final = """\
  ccgym train seeds aurora --seeds 1,2,3,4,5
      five seeds into runs/aurora-1 …; policy, card, curves and seeds into agents/aurora
  ccgym train seeds aurora --seeds 1,2,3 --out mine
      the record in another folder; ccgym plot curves mine -o curve.png draws the learning curves
  ccgym train seeds aurora --seeds 1,2 --set training.steps=100000 --runs runs/short --out mine
      with changed settings
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
    """Return the command that repeats the record, without places, which do not change the result."""
    words = ["ccgym", "train", "seeds", Path(arguments.config).name.removesuffix(".yaml")]
    words += ["--seeds", ",".join(map(str, sorted(arguments.seeds)))]
    if arguments.export is not None:
        words += ["--export", str(arguments.export)]
    for override in arguments.overrides:
        words += ["--set", override]
    return words


TRAIN_SEEDS: Final = Command(
    "seeds",
    "train several seeds, measure each on fresh draws, export the seed of median reward",
    _train_seeds,
    description=_DESCRIPTION,
    examples=_EXAMPLES,
    options={
        "CONFIG": CONFIG,
        "--seeds 1,2,3 required": "the seeds to train",
        "--runs DIR = runs": "folder of the run directories",
        "-o, --out DIR": "folder of the agent, for the record (default: agents/NAME)",
        **SET,
        "--export N": "the seed to export (default: the seed of median reward); the record notes this choice",
        **DEVICE,
    },
)
