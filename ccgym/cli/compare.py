"""``ccgym compare``: the best models of several trainings and the baselines, by the agent's reward on fresh draws."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ccgym.cli.common import HelpFormatter, Parser, error_console, print_table, run, say
from ccgym.errors import ConfigError
from ccgym.files import atomic_write

if TYPE_CHECKING:
    from ccgym.contrib.comparison import Compared
    from ccgym.evaluation.bootstrap import Interval

_DESCRIPTION: Final = """\
Compare trainings. The best model of each run, and the baselines of the first run's configuration,
are measured by the agent's reward on the same fresh draws of the held-out paths. Runs of one
configuration are its seeds. All runs must have the same agent and the same held-out paths. The
intervals are bootstraps over draws and seeds; a gain is a difference on the same draws.
"""

_EXAMPLES: Final = """\
examples:
  ccgym compare runs/genet-1 runs/genet-2 runs/genet_uniform-1 runs/genet_uniform-2
      the curriculum against uniform training, two seeds each
  ccgym compare runs/genet*-? --over genet_uniform --csv genet.csv
      what each curriculum gains over uniform training, as a table
"""


def parser() -> argparse.ArgumentParser:
    """The command line of ``ccgym compare``."""
    made = Parser(prog="ccgym compare", description=_DESCRIPTION, epilog=_EXAMPLES, formatter_class=HelpFormatter)
    made.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run directories of `ccgym train`")
    made.add_argument(
        "--over", metavar="NAME", help="the configuration that others are compared with (default: the first run's)"
    )
    made.add_argument("--draws", type=int, default=256, metavar="N", help="fresh draws of the paths (default: 256)")
    made.add_argument("--csv", type=Path, metavar="FILE", help="write the table there, too")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``ccgym compare`` and return its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    return run(lambda: _compare(parser().parse_args(words)))


def _compare(arguments: argparse.Namespace) -> int:
    if arguments.draws < 2:
        raise ConfigError("out-of-range", str(arguments.draws), where="--draws", expected="2 draws or more")
    from ccgym.cli.progress import Progress
    from ccgym.contrib.comparison import COLUMNS, compare
    from ccgym.training.evaluation import ORACLE

    with Progress(error_console()) as progress:
        found = compare(arguments.runs, arguments.over, arguments.draws, progress)
    (over,) = (one.name for one in found if one.gain is None)
    numbers = ("mean reward (95 %)", f"over {over} (95 %)", "of the gap to the oracle")
    print_table(("name", *numbers, "seeds"), [_cells(one) for one in found], right=numbers)
    gap = next((one.gain for one in found if one.name == ORACLE), None)
    if gap is not None and gap.low <= 0:
        say(f"The oracle is not clearly ahead of {over}, {_span(gap)}: there are no shares of the gap to it.")
    if arguments.csv is not None:
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(one.row() for one in found)
        atomic_write(arguments.csv, text.getvalue())
        say(f"table     {arguments.csv}")
    return 0


def _cells(one: Compared) -> tuple[str, ...]:
    gain = "" if one.gain is None else _span(one.gain, "+")
    closed = "" if one.closed is None else f"{100 * one.closed:.0f} %"
    return one.name, _span(one.mean), gain, closed, str(one.row()["seeds"])


def _span(interval: Interval, sign: str = "") -> str:
    return f"{interval.mean:{sign}.1f} ({interval.low:{sign}.1f} … {interval.high:{sign}.1f})"
