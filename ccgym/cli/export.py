"""``ccgym export``: the policy of a training run, of Stable-Baselines3's own file or of any ONNX file, as a scheme.

Exit status: 0, the policy was exported; for the rest see :mod:`ccgym.cli.common`. A policy that would not do what the
trained one does is an error, and nothing is written.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ccgym.cli.common import HelpFormatter, Parser, run, say
from ccgym.invocation import command

_DESCRIPTION: Final = """\
Export the policy of a training run, a model that Stable-Baselines3 saved after training in ccgym's environments
(PPO, A2C, SAC, TD3), or a network that was made elsewhere: NAME.onnx, the network with its normalization, and
NAME.json, its card. Before they are written, the exported policy is compared with the given one on held-out episodes.
"""

_EXAMPLES: Final = """\
examples:
  ccgym export runs/aurora-1-1
      the best model, into runs/aurora-1-1/export
  ccgym evaluate --trace 77.72mbps --schemes runs/aurora-1-1,bbr,cubic
      … which is then a scheme like any other
  ccgym export runs/aurora-1-1 --model final -o mine.onnx
      the model at the end of training, into mine.onnx and mine.json
  ccgym export model.zip --config aurora.yaml --normalize vecnormalize.pkl
      what model.save("model.zip") wrote, of a model trained behind VecNormalize in the environment of aurora.yaml;
      SB3 unpickles what is in these files, so take them from trusted places only
  ccgym export network.onnx --config mine.yaml
      what torch.onnx.export wrote, of a network that ccgym has no part in; mine.yaml says what its numbers mean:
      mine.onnx and mine.json
"""


def parser() -> argparse.ArgumentParser:
    """The command line of ``ccgym export``."""
    made = Parser(prog="ccgym export", description=_DESCRIPTION, epilog=_EXAMPLES, formatter_class=HelpFormatter)
    made.add_argument(
        "source",
        metavar="RUN_DIR|MODEL.zip|NETWORK.onnx",
        type=Path,
        help="a run directory of `ccgym train`, a model of SB3, or a network from elsewhere",
    )
    made.add_argument(
        "-o",
        "--out",
        metavar="OUT",
        type=Path,
        help="a .onnx file or a directory (default: RUN_DIR/export, the folder of the file)",
    )
    made.add_argument("--model", metavar="best|final", help="RUN_DIR: which model of the run (default: best)")
    made.add_argument(
        "--config",
        metavar="CONFIG",
        help="MODEL.zip, NETWORK.onnx: the configuration with its agent, and the environment where it is compared",
    )
    made.add_argument(
        "--algorithm", metavar="NAME", help="MODEL.zip: ppo, a2c, sac or td3 (default: what the file says)"
    )
    made.add_argument(
        "--normalize", metavar="FILE", type=Path, help="MODEL.zip: what VecNormalize.save wrote, if there was one"
    )
    made.add_argument("--name", metavar="NAME", help="what to call it (default: the configuration's name)")
    made.add_argument(
        "--episodes", type=int, default=5, metavar="N", help="held-out episodes of the comparison (default: 5)"
    )
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``ccgym export`` and return its exit status."""
    return run(lambda: _export(parser().parse_args(argv)))


def _export(arguments: argparse.Namespace) -> int:
    from ccgym.contrib.others import export_any
    from ccgym.training.config import TrainConfig

    made = export_any(
        arguments.source,
        arguments.out,
        config=None if arguments.config is None else TrainConfig.load(arguments.config),
        which=arguments.model,
        algorithm=arguments.algorithm,
        normalize=arguments.normalize,
        name=arguments.name,
        episodes=arguments.episodes,
    )
    card, parity = made.card, made.parity
    like, source = ("trained", "torch") if card.training else ("given", "the network")
    say(f"{card.name}: {card.label}, {card.policy.kind}, {made.onnx.stat().st_size:,} bytes")
    say(
        f"  as {like}, within {parity.max_abs_difference:.1e} over {parity.decisions} decisions "
        f"in {parity.episodes} held-out episodes"
    )
    say(f"  as {source} in float64, bit for bit; {len(parity.trajectories)} trajectories with the same hash")
    say(f"network   {made.onnx}")
    say(f"card      {made.card_file}")
    say(f"to use it: {command('evaluate')} --trace 77.72mbps --schemes {made.onnx},bbr,cubic")
    return 0
