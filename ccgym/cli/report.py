"""``ccgym report``: results as a static site or in the formats of other programs, reports of directories of Pantheon's
and of ours, and how far runs are.
"""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ccgym.cli.command import Command
from ccgym.cli.common import console, console_for, say, say_json
from ccgym.cli.evaluation_output import show_results, write_report
from ccgym.cli.options import output
from ccgym.cli.watch import WATCH
from ccgym.errors import ConfigError, shown

if TYPE_CHECKING:
    from rich.console import Console

    from ccgym.evaluation.results import ResultSet

# --- Analyze ---------------------------------------------------------------------------------------------------------


def _analyze(arguments: argparse.Namespace) -> int:
    shown_on = console_for(arguments)
    results = analyze(
        arguments.directory,
        arguments.out,
        shown_on,
        schemes=arguments.schemes,
        config=arguments.config,
        command=shlex.join(arguments.typed),
        acklinks=arguments.include_acklink,
        figures=not arguments.no_figures,
        jobs=arguments.jobs,
    )
    if arguments.json:
        say_json(results.as_dict(), None)
    return 0


def analyze(
    directory: Path,
    out: str | Path | None,
    shown_on: Console,
    *,
    schemes: Sequence[str] | None,
    config: Path | None = None,
    command: str,
    acklinks: bool,
    figures: bool,
    jobs: int | None = None,
) -> ResultSet:
    """Make table, figures and report of a directory, and show them; its results.

    ``out`` is where they go: by default results/NAME, and the directory itself where it is one of ours.
    """
    results, place = _analyzed(directory, None if out is None else Path(out), shown_on, schemes, config, command)
    if acklinks:
        results = _with_acklinks(results, directory, place, shown_on)
    write_report(results, place, shown_on, figures=figures, jobs=jobs)
    show_results(results, place, shown_on, figures=figures)
    return results


def _analyzed(
    directory: Path,
    out: Path | None,
    shown_on: Console,
    schemes: Sequence[str] | None,
    config: Path | None,
    command: str,
) -> tuple[ResultSet, Path]:
    """The results in a directory, and where what is made of them goes."""
    from ccgym.cli.progress import Progress
    from ccgym.evaluation.backends import RECORDED
    from ccgym.evaluation.pantheon.analysis import analyze as read
    from ccgym.evaluation.pantheon.directory import PantheonDirectory
    from ccgym.evaluation.results import RESULTS_FILE, ResultSet

    ours = ResultSet.load(directory) if (directory / RESULTS_FILE).exists() else None
    if ours is not None and ours.backend != RECORDED:
        if out not in (None, directory) or config is not None:
            raise ConfigError(
                "options-conflict",
                "--out or --config with a directory of ccgym's own",
                where=str(directory),
                expected="the directory, and --schemes: its report is made anew in place",
            )
        return (ours if schemes is None else ours.only(schemes)), directory
    opened = PantheonDirectory.open(directory, config)
    target = out or Path("results", directory.resolve().stem if directory.is_file() else directory.resolve().name)
    shown_on.print(f"{len(opened.runs)} runs of {len(opened.styles)} schemes, into {target}")
    for file in opened.alone:
        shown_on.print(f"left out: {file.name}, since the tunnel's log of its other end is missing", style="yellow")
    with Progress(shown_on) as progress:
        return read(opened, target, schemes=schemes, command=command, observer=progress), target


def _with_acklinks(results: ResultSet, source: Path, out: Path, shown_on: Console) -> ResultSet:
    """The same results with their acknowledgements, whose logs are in ``source``; says so where there are none."""
    from ccgym.cli.progress import Progress
    from ccgym.evaluation.pantheon.analysis import with_acklinks

    with Progress(shown_on) as progress:
        found = with_acklinks(results, source, out, progress)
    without = sum(cell.acklink is None for cell in found.cells)
    if without:
        shown_on.print(f"{without} of {len(found.cells)} runs have no log of their acknowledgements", style="yellow")
    return found


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
    opened = PantheonDirectory.open(arguments.source)
    recorded = Recorded.of_files(opened, chosen_run(opened, arguments.run))
    assert recorded is not None, "chosen_run takes one with a log"
    write_run(recorded, target, flow=arguments.flow, at=arguments.at)
    say(f"{target}: {recorded.name}, {recorded.data.flow.size} packets")
    return 0


_ANALYZE: Final = Command(
    "analyze",
    "tables, figures and report of a directory of Pantheon's, or of ours",
    _analyze,
    description="""\
Make table, figures and report of a results directory: of one that Pantheon's test.py filled, old
ones and those without packet logs too, or of one of `ccgym evaluate`. Nothing in a directory of
Pantheon's is changed; what is made of it goes into a directory of its own.
""",
    examples="""\
  ccgym report analyze ~/pantheon/src/experiments/data
      its table, figures and report, in results/data
  ccgym report analyze 2019-10-22T18-47 --schemes bbr,indigo --out results/two
      two of its schemes
  ccgym report analyze up.log
      what mm-link --uplink-log=up.log wrote: rates, and the delay of its queue
  ccgym report analyze results/77.72mbps
      the report of an evaluation of ours, made anew from its results
""",
    options={
        "DIRECTORY|LOG as directory": "what test.py, or ccgym evaluate, wrote: merged or raw logs of the tunnel, "
        "logs of mm-link, statistics; or one log, of mm-link or merged",
        "--schemes A,B,C": "the schemes to read, by their names in files (default: all)",
        "--config FILE": "Pantheon's src/config.yml, with names, colors and markers of the schemes (default: "
        "config.yml in the directory; without one, schemes look like ours of that name)",
        "--include-acklink": "figures of the acknowledgements, too",
        "--jobs N": "figures at a time (default: one per processor)",
        **output("the results", "results/NAME of the directory; the directory itself where it is one of ours"),
    },
    reads={"directory": Path},
)

_SITE: Final = Command(
    "site",
    "results of experiments as a static site, with a database",
    _site,
    description="""\
Make a static site of results of experiments: a scoreboard, a page per experiment with the flows,
metrics and figures of every condition, a page per scheme, a search; and the numbers as SQLite and
Parquet. It needs no server and no network: open index.html.
""",
    examples="""\
  ccgym evaluate --experiment weaknesses --quick
  ccgym report site
      of all experiments in results/, into results/site
  ccgym report site results/ccperf results/weaknesses --out public --title "Congestion control at our lab"
""",
    options={
        "[DIRECTORY...] as directories": "results of `ccgym evaluate --experiment`, or directories of such (default: "
        "results)",
        "--out DIR = results/site": "where to",
        "--title TITLE = Congestion control, measured": "what the site is called",
    },
)

_CONVERT: Final = Command(
    "convert",
    "results as Parquet, Arrow, pcap, qlog or flent's",
    _convert,
    description="""\
Write results in the format of another program; the name of TARGET says which:

  .parquet, .arrow, .feather   a table of all runs, for pandas, polars, DuckDB, R
  .pcap                        the packets of a run, with nanoseconds and made-up IPv4 and UDP headers
  .sqlog                       a flow of a run as qlog: packets sent, lost, received; RTT, window
  .flent.gz                    rates and delays of a run as a data file of flent's test tcp_nup
""",
    examples="""\
  ccgym report convert results/77.72mbps flows.parquet
      a row per scheme, run and flow
  ccgym report convert results/77.72mbps series.arrow --table series
      over time: a row per scheme, run, 100 ms and flow
  ccgym report convert results/77.72mbps bbr.pcap --run bbr:1
      what a capture at the sender would have seen in BBR's first run; --at receiver for the other end
  ccgym report convert ~/pantheon/src/experiments/data indigo.flent.gz --run indigo:3
      a run of Pantheon's, for `flent -i indigo.flent.gz -p totals`
""",
    options={
        "SOURCE": "a results directory of `ccgym evaluate` or Pantheon's test.py; or a packet log, for all but tables",
        "TARGET": "the file to write",
        "--table NAME": "of tables: flows (default), series or packets",
        "--run SCHEME:K": "which run (default: the only one with packet logs)",
        "--flow N = 1": "which flow; of qlog only",
        "--at sender|receiver = sender": "where packets are seen",
    },
    reads={"source": Path, "target": Path},
)

COMMAND: Final = Command("report", commands=(_SITE, _CONVERT, _ANALYZE, WATCH))
