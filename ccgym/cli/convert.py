"""``ccgym convert``: results in the formats of other programs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ccgym.cli.common import HelpFormatter, Parser, run, say
from ccgym.errors import ConfigError, shown

DESCRIPTION: Final = """\
Write results in the format of another program; the name of TARGET says which:

  .parquet, .arrow, .feather   a table of all runs, for pandas, polars, DuckDB, R
  .pcap                        the packets of a run, with nanoseconds and made-up IPv4 and UDP headers
  .sqlog                       a flow of a run as qlog: packets sent, lost, received; RTT, window
  .flent.gz                    rates and delays of a run as a data file of flent's test tcp_nup
"""

EXAMPLES: Final = """\
examples:
  ccgym convert results/77.72mbps flows.parquet
      a row per scheme, run and flow
  ccgym convert results/77.72mbps series.arrow --table series
      over time: a row per scheme, run, 100 ms and flow
  ccgym convert results/77.72mbps bbr.pcap --run bbr:1
      what a capture at the sender would have seen in BBR's first run; --at receiver for the other end
  ccgym convert ~/pantheon/src/experiments/data indigo.flent.gz --run indigo:3
      a run of Pantheon's, for `flent -i indigo.flent.gz -p totals`
"""


def parser() -> argparse.ArgumentParser:
    """The command line of ``ccgym convert``."""
    made = Parser(
        prog="ccgym convert",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument(
        "source",
        type=Path,
        metavar="SOURCE",
        help="a results directory of `ccgym evaluate` or Pantheon's test.py; or a packet log, for all but tables",
    )
    made.add_argument("target", type=Path, metavar="TARGET", help="the file to write")
    made.add_argument("--table", metavar="NAME", help="of tables: flows (default), series or packets")
    made.add_argument("--run", metavar="SCHEME:K", help="which run (default: the only one with packet logs)")
    made.add_argument("--flow", type=int, default=1, metavar="N", help="which flow; of qlog only (default: 1)")
    made.add_argument(
        "--at", default="sender", metavar="sender|receiver", help="where packets are seen: at the sender (default)"
    )
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``ccgym convert`` and return its exit status; see :mod:`ccgym.cli.common`."""
    words = list(sys.argv[1:] if argv is None else argv)
    return run(lambda: _convert(parser().parse_args(words)))


def _convert(arguments: argparse.Namespace) -> int:
    from ccgym.evaluation.exchange import RUN_FORMATS, Recorded, write_run
    from ccgym.evaluation.exchange.recorded import chosen_run
    from ccgym.evaluation.exchange.tables import TABLE_FORMATS, write_table
    from ccgym.evaluation.pantheon.directory import PantheonDirectory

    target: Path = arguments.target
    if target.suffix in TABLE_FORMATS:
        if arguments.run is not None:
            raise ConfigError(
                "options-conflict", "--run with a table", expected="a table of all runs: its columns say which"
            )
        rows = write_table(arguments.source, target, arguments.table or "flows")
        say(f"{target}: {rows} rows")
        return 0
    if not target.name.endswith(tuple(RUN_FORMATS)):
        raise ConfigError(
            "unknown-suffix",
            shown(target.name),
            where="TARGET",
            expected=f"a file that ends with {', '.join((*TABLE_FORMATS, *RUN_FORMATS))}",
        )
    if arguments.table is not None:
        raise ConfigError(
            "options-conflict", "--table with a run", expected=f"a file that ends with {', '.join(TABLE_FORMATS)}"
        )
    if arguments.at not in ("sender", "receiver"):
        raise ConfigError("unknown-choice", shown(arguments.at), where="--at", expected="sender or receiver")
    opened = PantheonDirectory.open(arguments.source)
    recorded = Recorded.of_files(opened, chosen_run(opened, arguments.run))
    assert recorded is not None, "chosen_run takes one with a log"
    write_run(recorded, target, flow=arguments.flow, at=arguments.at)
    say(f"{target}: {recorded.name}, {recorded.data.flow.size} packets")
    return 0
