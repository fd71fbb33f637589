"""``ccgym report``: make a static site or files of other programs from results, make reports for directories of
Pantheon and ccgym, and show the progress of runs.
"""

from __future__ import annotations

import argparse
import shlex
import time
from pathlib import Path
from typing import Final

from ccgym.cli.command import Command
from ccgym.cli.common import console, console_for, say, say_json
from ccgym.cli.evaluation_output import report
from ccgym.cli.options import output
from ccgym.cli.watch import WATCH
from ccgym.errors import ConfigError, shown

# --- Analyze ---------------------------------------------------------------------------------------------------------


def analyze(arguments: argparse.Namespace) -> int:
    """Make table, figures and report for a directory of Pantheon or ccgym, or for one log, and show them."""
    from ccgym.cli.progress import Progress
    from ccgym.evaluation.backends import RECORDED
    from ccgym.evaluation.pantheon import analysis
    from ccgym.evaluation.pantheon.directory import PantheonDirectory
    from ccgym.evaluation.results import ResultSet
    from ccgym.evaluation.results_file import has_results

    shown_on = console_for(arguments)
    directory, out, schemes = arguments.directory, arguments.out, arguments.schemes
    results = ResultSet.load(directory) if has_results(directory) else None
    if results is not None and results.backend != RECORDED:
        if out not in (None, directory) or arguments.config is not None:
            raise ConfigError(
                "options-conflict",
                "--out or --config with a directory of ccgym",
                where=str(directory),
                expected="the directory and --schemes only: its report is made again in place",
            )
        out = directory
        results = results if schemes is None else results.only(schemes)
    else:
        opened = PantheonDirectory.open(directory, arguments.config)
        whole = directory.resolve()
        out = out or Path("results", whole.stem if directory.is_file() else whole.name)
        shown_on.print(f"{len(opened.runs)} runs of {len(opened.styles)} schemes, into {out}")
        for file in opened.alone:
            shown_on.print(f"left out: {file.name}, since the tunnel's log of its other end is missing", style="yellow")
        with Progress(shown_on) as progress:
            line = shlex.join(arguments.typed)
            results = analysis.analyze(opened, out, schemes=schemes, command=line, observer=progress)
    if arguments.include_acklink:
        with Progress(shown_on) as progress:
            results = analysis.with_acklinks(results, directory, out, progress)
        if without := sum(cell.acklink is None for cell in results.cells):
            shown_on.print(f"{without} of {len(results.cells)} runs have no log of acknowledgements", style="yellow")
    report(results, out, shown_on, figures=not arguments.no_figures, jobs=arguments.jobs)
    if arguments.json:
        say_json(results.as_dict(), None)
    return 0


# --- Site and other formats ------------------------------------------------------------------------------------------


def _site(arguments: argparse.Namespace) -> int:
    from ccgym.cli.progress import Progress
    from ccgym.report.site import find_results, write_site

    started = time.time()
    with Progress(console()) as progress:
        found = find_results(arguments.directories or [Path("results")], progress.notice)
        first = write_site(found, arguments.out, arguments.title, list(arguments.typed), started, progress)
    say(f"site  {first}")
    return 0


def _convert(arguments: argparse.Namespace) -> int:
    from ccgym.evaluation.exchange import RUN_FORMATS, Recorded, write_run
    from ccgym.evaluation.exchange.recorded import chosen_run
    from ccgym.evaluation.exchange.tables import TABLE_FORMATS, write_table
    from ccgym.evaluation.pantheon.directory import PantheonDirectory

    target: Path = arguments.target
    if target.suffix in TABLE_FORMATS:
        if arguments.run is not None:
            raise ConfigError(
                "options-conflict", "--run with a table", expected="a table of all runs, with their columns"
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
    opened = PantheonDirectory.open(arguments.source)
    recorded = Recorded.of_files(opened, chosen_run(opened, arguments.run))
    assert recorded is not None, "chosen_run takes one with a log"
    write_run(recorded, target, flow=arguments.flow, at=arguments.at)
    say(f"{target}: {recorded.name}, {recorded.data.flow.size} packets")
    return 0


_ANALYZE: Final = Command(
    "analyze",
    "make tables, figures and report for a directory of Pantheon or ccgym",
    analyze,
    description="""\
Make table, figures and report for a results directory of Pantheon's test.py, also for old directories
and directories without packet logs, or for a directory of `ccgym evaluate`. A directory of Pantheon
is not changed; the results are written to another directory.
""",
    examples="""\
  ccgym report analyze ~/pantheon/src/experiments/data
      its table, figures and report, in results/data
  ccgym report analyze 2019-10-22T18-47 --schemes bbr,indigo --out results/two
      only two of its schemes
  ccgym report analyze up.log
      a log of mm-link --uplink-log=up.log: rates, and the delay of its queue
  ccgym report analyze results/77.72mbps
      the report of an evaluation of ccgym, made again from its results
""",
    options={
        "DIRECTORY|LOG as directory": "results of test.py or ccgym evaluate: merged or raw logs of the tunnel, "
        "logs of mm-link, statistics; or one log, of mm-link or merged",
        "--schemes A,B,C": "the schemes to read, by their names in files (default: all)",
        "--config FILE": "Pantheon's src/config.yml, with names, colors and markers of the schemes (default: "
        "config.yml in the directory; without one, ccgym's schemes with these names)",
        "--include-acklink": "also draw figures of the ACKs",
        "--jobs N": "figures drawn at the same time (default: one per processor)",
        **output("the results", "results/NAME of the directory; for a directory of ccgym, the directory itself"),
    },
    reads={"directory": Path, "schemes": lambda text: [word for word in text.split(",") if word]},
)

_SITE: Final = Command(
    "site",
    "make a static site with a database from results of experiments",
    _site,
    description="""\
Make a static site from results of experiments: a scoreboard, a page per experiment with the flows,
metrics and figures of every condition, a page per scheme, a search; and the numbers as SQLite and
Parquet. The site needs no server and no network: open index.html.
""",
    examples="""\
  ccgym evaluate --experiment stress_tests --quick
  ccgym report site
      all experiments in results/, into results/site
  ccgym report site results/ccperf results/stress_tests --out public --title "Congestion control at our lab"
""",
    options={
        "[DIRECTORY...] as directories": "results of `ccgym evaluate --experiment`, or folders of results (default: "
        "results)",
        "-o, --out DIR = results/site": "directory of the site",
        "--title TITLE = Congestion control, measured": "title of the site",
    },
)

_CONVERT: Final = Command(
    "convert",
    "write results as Parquet, Arrow, pcap, qlog or flent files",
    _convert,
    description="""\
Write results in the format of another program; the suffix of TARGET selects it:

  .parquet, .arrow, .feather   a table of all runs, for pandas, polars, DuckDB, R
  .pcap                        the packets of a run, with nanoseconds and artificial IPv4 and UDP headers
  .sqlog                       a flow of a run as qlog: packets sent, lost, received; RTT, window
  .flent.gz                    rates and delays of a run as a data file of flent's test tcp_nup
""",
    examples="""\
  ccgym report convert results/77.72mbps flows.parquet
      a row per scheme, run and flow
  ccgym report convert results/77.72mbps series.arrow --table series
      series over time: a row per scheme, run, 100 ms and flow
  ccgym report convert results/77.72mbps bbr.pcap --run bbr:1
      BBR's first run, as captured at the sender; --at receiver for the other end
  ccgym report convert ~/pantheon/src/experiments/data indigo.flent.gz --run indigo:3
      a run of Pantheon, for `flent -i indigo.flent.gz -p totals`
""",
    options={
        "SOURCE": "a results directory of `ccgym evaluate` or Pantheon's test.py; or a packet log, for all but tables",
        "TARGET": "the file to write",
        "--table NAME": "for tables: flows (default), series or packets",
        "--run SCHEME:K": "the run (default: the only run with packet logs)",
        "--flow N = 1": "number of the flow; only for qlog",
        "--at sender|receiver = sender": "where packets are captured",
    },
    reads={"source": Path, "target": Path},
)

COMMAND: Final = Command("report", commands=(_SITE, _CONVERT, _ANALYZE, WATCH))
