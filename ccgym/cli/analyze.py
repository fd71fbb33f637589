"""``ccgym analyze``: a directory of Pantheon's, or of ours, as tables, figures and report."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ccgym.cli.common import (
    HelpFormatter,
    Parser,
    add_output,
    console,
    error_console,
    run,
)
from ccgym.cli.evaluation_output import show_results, write_report
from ccgym.errors import ConfigError
from ccgym.invocation import command

if TYPE_CHECKING:
    from rich.console import Console

    from ccgym.evaluation.results import ResultSet

DESCRIPTION: Final = """\
Make table, figures and report of a results directory: of one that Pantheon's test.py filled, old
ones and those without packet logs too, or of one of `ccgym evaluate`. Nothing in a directory of
Pantheon's is changed; what is made of it goes into a directory of its own.
"""

EXAMPLES: Final = """\
examples:
  ccgym analyze ~/pantheon/src/experiments/data
      its table, figures and report, in results/data
  ccgym analyze 2019-10-22T18-47 --schemes bbr,indigo --out results/two
      two of its schemes
  ccgym analyze up.log
      what mm-link --uplink-log=up.log wrote: rates, and the delay of its queue
  ccgym analyze results/77.72mbps
      the report of an evaluation of ours, made anew from its results
"""


def parser() -> argparse.ArgumentParser:
    """The command line of ``ccgym analyze``."""
    made = Parser(
        prog="ccgym analyze",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument(
        "directory",
        type=Path,
        metavar="DIRECTORY|LOG",
        help="what test.py, or ccgym evaluate, wrote: merged or raw logs of the tunnel, logs of mm-link, statistics; "
        "or one log, of mm-link or merged",
    )
    made.add_argument("--schemes", metavar="A,B,C", help="the schemes to read, by their names in files (default: all)")
    made.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="Pantheon's src/config.yml, with names, colors and markers of the schemes (default: config.yml in the "
        "directory; without one, schemes look like ours of that name)",
    )
    made.add_argument("--include-acklink", action="store_true", help="figures of the acknowledgements, too")
    made.add_argument("--jobs", type=int, metavar="N", help="figures at a time (default: one per processor)")
    add_output(made, "the results", "results/NAME of the directory; the directory itself where it is one of ours")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``ccgym analyze`` and return its exit status; see :mod:`ccgym.cli.common`."""
    words = list(sys.argv[1:] if argv is None else argv)
    return run(lambda: _analyze(parser().parse_args(words), words))


def _analyze(arguments: argparse.Namespace, words: Sequence[str]) -> int:
    shown_on = error_console() if arguments.json else console()
    schemes = None if arguments.schemes is None else [word for word in arguments.schemes.split(",") if word]
    out = None if arguments.out is None else Path(arguments.out)
    line = shlex.join([*command("analyze").split(), *words])
    results, out = analyzed(arguments.directory, out, shown_on, schemes=schemes, config=arguments.config, command=line)
    if arguments.include_acklink:
        results = include_acklinks(results, arguments.directory, out, shown_on)
    write_report(results, out, shown_on, figures=not arguments.no_figures, jobs=arguments.jobs)
    show_results(results, out, shown_on, figures=not arguments.no_figures)
    if arguments.json:
        json.dump(results.as_dict(), sys.stdout, ensure_ascii=False)
        sys.stdout.write("\n")
    return 0


def analyzed(
    directory: Path,
    out: Path | None,
    shown_on: Console,
    *,
    schemes: Sequence[str] | None = None,
    config: Path | None = None,
    command: str = "",
) -> tuple[ResultSet, Path]:
    """The results in a directory, and where what is made of them goes."""
    from ccgym.cli.progress import Progress
    from ccgym.evaluation.backends import RECORDED
    from ccgym.evaluation.pantheon.analysis import analyze
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
        return analyze(opened, target, schemes=schemes, command=command, observer=progress), target


def include_acklinks(results: ResultSet, source: Path, out: Path, shown_on: Console) -> ResultSet:
    """The same results with their acknowledgements, whose logs are in ``source``; says so where there are none."""
    from ccgym.cli.progress import Progress
    from ccgym.evaluation.pantheon.analysis import with_acklinks

    with Progress(shown_on) as progress:
        found = with_acklinks(results, source, out, progress)
    without = sum(cell.acklink is None for cell in found.cells)
    if without:
        shown_on.print(f"{without} of {len(found.cells)} runs have no log of their acknowledgements", style="yellow")
    return found
