"""``ccgym site``: results of experiments as a static site."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ccgym.cli.common import HelpFormatter, Parser, console, run
from ccgym.invocation import command

DESCRIPTION: Final = """\
Make a static site of results of experiments: a scoreboard, a page per experiment with the flows,
metrics and figures of every condition, a page per scheme, a search; and the numbers as SQLite and
Parquet. It needs no server and no network: open index.html.
"""

EXAMPLES: Final = """\
examples:
  ccgym evaluate --experiment weaknesses --quick
  ccgym site
      of all experiments in results/, into results/site
  ccgym site results/ccperf results/weaknesses --out public --title "Congestion control at our lab"
"""


def parser() -> argparse.ArgumentParser:
    """The command line of ``ccgym site``."""
    made = Parser(
        prog="ccgym site",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument(
        "directories",
        type=Path,
        nargs="*",
        metavar="DIRECTORY",
        help="results of `ccgym evaluate --experiment`, or directories of such (default: results)",
    )
    made.add_argument("--out", type=Path, default=Path("results/site"), metavar="DIR", help="default: results/site")
    made.add_argument("--title", default="Congestion control, measured", help="what the site is called")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``ccgym site`` and return its exit status; see :mod:`ccgym.cli.common`."""
    words = list(sys.argv[1:] if argv is None else argv)
    return run(lambda: _site(parser().parse_args(words), words))


def _site(arguments: argparse.Namespace, words: Sequence[str]) -> int:
    from ccgym.cli.progress import Progress
    from ccgym.report.site import find_results, write_site

    started = time.time()
    shown_on = console()
    line = [*command("site").split(), *words]
    with Progress(shown_on) as progress:
        found = find_results(arguments.directories or [Path("results")], progress.notice)
        first = write_site(found, arguments.out, arguments.title, line, started, progress)
    shown_on.print(f"site  {first}", soft_wrap=True)
    return 0
