"""``ccgym rfc9743``: a scheme evaluated as RFC 9743 asks, as a report that a draft or a paper can cite.

Exit status: 0, done, also where marks are missed; 1, a run failed; for the rest see :mod:`ccgym.cli.common`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from ccgym.cli.common import HelpFormatter, add_cluster, add_output, add_seed, console, error_console, named_as_typed
from ccgym.errors import ConfigError
from ccgym.invocation import command

EXPERIMENT: Final = "rfc9743"
"""The file in ``configs/experiments`` with the rows."""

_DESCRIPTION: Final = """\
Evaluate a scheme as RFC 9743 (BCP 133, "Specifying New Congestion Control Algorithms") asks, section by section, and
write a report: HTML, Markdown, JSON and CSV. Every row has a measure, a mark with its reason, the result with its 95 %
interval, and the command that runs it again. The marks are ours; the RFC names none. What cannot be tested yet is
listed as such. Interrupted, the same command goes on.
"""

_EXAMPLES: Final = """\
examples:
  ccgym rfc9743 cubic --quick                  one repetition, fewer conditions: a look in seconds
  ccgym rfc9743 runs/mine                      the whole report; into results/rfc9743-mine
  ccgym rfc9743 bbr --only 5.1.3,7             two parts of it
  ccgym rfc9743 cubic --confirm 4              and four of its runs once more with real packets
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``rfc9743``."""
    made = commands.add_parser(
        "rfc9743",
        help="evaluate a scheme as RFC 9743 asks, and write the report",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument("scheme", metavar="SCHEME", help="a scheme, with parameters; as in `ccgym evaluate --schemes`")
    made.add_argument("--only", metavar="A,B", help="only these sections of the RFC, such as 5.1.1,7")
    made.add_argument("--quick", action="store_true", help="a smoke run: one repetition, fewer conditions")
    made.add_argument("--runs", type=int, metavar="N", help="repetitions of every condition (default: 3 to 5)")
    made.add_argument(
        "--confirm",
        type=int,
        default=0,
        metavar="N",
        help="make N of the simulated runs once more with real packets (backend emulated), and say whether they agree; "
        "each takes up to a minute (default: 0)",
    )
    made.add_argument("--jobs", type=int, metavar="N", help="runs at a time (default: as many as processors)")
    add_cluster(made, "make the simulated runs")
    add_seed(made)
    add_output(made, "the report", "results/rfc9743-SCHEME")
    made.set_defaults(run=_report)


def _report(arguments: argparse.Namespace) -> int:
    from ccgym.cli.evaluate_experiment import run_and_show
    from ccgym.evaluation.run import parse_contenders
    from ccgym.experiments.load import load_experiment
    from ccgym.experiments.request import Request
    from ccgym.experiments.spec import ExperimentSet

    if not 0 <= arguments.confirm <= 100:
        raise ConfigError(
            "out-of-range", str(arguments.confirm), where="--confirm", expected="a whole number from 0 to 100"
        )
    spec = load_experiment(EXPERIMENT, quick=arguments.quick)
    assert isinstance(spec, ExperimentSet), "the rows of the RFC are a set of experiments"
    schemes = parse_contenders(arguments.scheme, "SCHEME")
    words = [EXPERIMENT, *(one.key for one in schemes)]
    if arguments.only is not None:
        sections = [section for one in arguments.only.split(",") if (section := one.strip())]
        try:
            spec = spec.only(sections)
        except ConfigError as error:
            raise error.at("--only") from None
        words += sections
    words += ["quick"] if arguments.quick else []
    try:
        request = Request(
            out=Path("results", "-".join(words)) if arguments.out is None else Path(arguments.out),
            schemes=schemes,
            runs=arguments.runs,
            seed=arguments.seed,
            jobs=arguments.jobs,
            quick=arguments.quick,
            confirm=arguments.confirm,
            command=(*command("rfc9743").split(), *arguments.words),
        )
    except ConfigError as error:
        raise named_as_typed(error) from None
    return run_and_show(spec, request, arguments, error_console() if arguments.json else console())
