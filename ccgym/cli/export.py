"""``ccgym export``: the policy of a training run as a scheme that needs no torch.

Exit status: 0, the policy was exported; for the rest see :mod:`ccgym.cli.common`. A policy that would not do what the
trained one does is an error, and nothing is written.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ccgym.cli.common import HelpFormatter, run, say
from ccgym.invocation import command

_DESCRIPTION: Final = """\
Export the policy of a training run: NAME.onnx, the network with its normalization, and NAME.json, its card. Before
they are written, the exported policy is compared with the trained one on held-out episodes.
"""

_EXAMPLES: Final = """\
examples:
  ccgym export runs/aurora-1-1
      the best model, into runs/aurora-1-1/export
  ccgym evaluate --trace 77.72mbps --schemes runs/aurora-1-1,bbr,cubic
      … which is then a scheme like any other
  ccgym export runs/aurora-1-1 --model final -o mine.onnx
      the model at the end of training, into mine.onnx and mine.json
"""


def parser() -> argparse.ArgumentParser:
    """The command line of ``ccgym export``."""
    made = argparse.ArgumentParser(
        prog="ccgym export", description=_DESCRIPTION, epilog=_EXAMPLES, formatter_class=HelpFormatter
    )
    made.add_argument("run_dir", metavar="RUN_DIR", type=Path, help="a run directory of `ccgym train`")
    made.add_argument(
        "-o", "--out", metavar="OUT", type=Path, help="a .onnx file or a directory (default: RUN_DIR/export)"
    )
    made.add_argument("--model", default="best", metavar="best|final", help="which model of the run (default: best)")
    made.add_argument("--name", metavar="NAME", help="what to call it (default: the configuration's name)")
    made.add_argument(
        "--episodes", type=int, default=5, metavar="N", help="held-out episodes of the comparison (default: 5)"
    )
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``ccgym export`` and return its exit status."""
    arguments = parser().parse_args(argv)
    return run(lambda: _export(arguments))


def _export(arguments: argparse.Namespace) -> int:
    from ccgym.training.export import export_policy

    made = export_policy(
        arguments.run_dir, arguments.out, which=arguments.model, name=arguments.name, episodes=arguments.episodes
    )
    card, parity = made.card, made.parity
    say(f"{card.name}: {card.label}, {card.policy.kind}, {made.onnx.stat().st_size:,} bytes")
    say(
        f"  as trained, within {parity.max_abs_difference:.1e} over {parity.decisions} decisions "
        f"in {parity.episodes} held-out episodes"
    )
    say(f"  as torch in float64, bit for bit; {len(parity.trajectories)} trajectories with the same hash")
    say(f"network   {made.onnx}")
    say(f"card      {made.card_file}")
    say(f"to use it: {command('evaluate')} --trace 77.72mbps --schemes {made.onnx},bbr,cubic")
    return 0
