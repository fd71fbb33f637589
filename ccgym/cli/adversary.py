"""``ccgym adversary``: paths on which a scheme is far from the oracle, found, minimized and confirmed.

Exit status: 0, done, also where nothing was found; 1, a run failed; for the rest see :mod:`ccgym.cli.common`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final

from ccgym.cli.common import HelpFormatter, add_output, add_seed, console, error_console, named_as_typed, option
from ccgym.errors import ConfigError
from ccgym.invocation import command
from ccgym.units import parse_positive_time, parse_rate

_DESCRIPTION: Final = """\
Search for paths on which a scheme is far from the oracle, which does well on them: rates that change, round trips,
buffers, random loss, jitter, acknowledgements in lumps. What is found is made as simple as possible, measured with
several seeds together with the oracle and classic schemes, run with real packets where this machine can, and written
as paths with names. Interrupted, the same command goes on.
"""

_EXAMPLES: Final = """\
examples:
  ccgym adversary cubic                        three minutes of search; into results/adversary-cubic
  ccgym adversary bbr copa runs/mine --budget 10min --finds 5
  ccgym adversary vegas --evaluations 500 --confirm 0 --no-figures
  ccgym evaluate --trace results/adversary-cubic/paths/adversary-cubic-1.yaml --schemes cubic,oracle
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``adversary``."""
    made = commands.add_parser(
        "adversary",
        help="find paths on which a scheme is far from the oracle",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument(
        "schemes", nargs="+", metavar="SCHEME", help="a scheme, with parameters; as in `ccgym evaluate --schemes`"
    )
    much = made.add_mutually_exclusive_group()
    much.add_argument(
        "--budget", metavar="TIME", help="length of the search for each scheme, such as 10min (default: 3min)"
    )
    much.add_argument("--evaluations", type=int, metavar="N", help="or the number of candidates to try for each")
    made.add_argument("--finds", type=int, metavar="N", help="finds for each scheme, at most (default: 3)")
    made.add_argument("--runtime", metavar="TIME", help="length of a run: seconds, or with a unit (default: 20)")
    made.add_argument("--runs", type=int, metavar="N", help="runs of every scheme on a find (default: 5)")
    made.add_argument("--max-rate", metavar="RATE", help="maximum rate of a path (default: 1gbps)")
    made.add_argument(
        "--confirm",
        type=int,
        default=1,
        metavar="N",
        help="run the first N finds of each scheme once more with real packets (backend emulated), where this machine "
        "can (default: 1)",
    )
    made.add_argument("--jobs", type=int, metavar="N", help="runs at a time (default: as many as processors)")
    add_seed(made)
    add_output(made, "the finds", "results/adversary-SCHEMES")
    made.set_defaults(run=_adversary)


def _adversary(arguments: argparse.Namespace) -> int:
    from ccgym.cli.evaluate_experiment import run_and_show
    from ccgym.config.yaml_loader import Loaded, validate
    from ccgym.evaluation.run import contenders
    from ccgym.experiments.adversary_search import NAME, AdversarySpec
    from ccgym.experiments.request import Request

    if not 0 <= arguments.confirm <= 100:
        raise ConfigError(
            "out-of-range", str(arguments.confirm), where="--confirm", expected="a whole number from 0 to 100"
        )
    if arguments.jobs is not None and arguments.jobs < 1:
        raise ConfigError("out-of-range", str(arguments.jobs), where="--jobs", expected="a whole number from 1")
    budget, rate = arguments.budget, arguments.max_rate
    given: dict[str, Any] = {
        "evaluations": arguments.evaluations,
        "budget_s": None if budget is None else option("--budget", parse_positive_time, budget) / 1e9,
        "finds": arguments.finds,
        "duration": arguments.runtime,
        "runs": arguments.runs,
        "max_rate_mbps": None if rate is None else float(option("--max-rate", parse_rate, rate)) / 1e6,
    }
    names = [name for one in arguments.schemes for part in one.split(",") if (name := part.strip())]
    schemes = contenders(names, "SCHEME")
    words = [NAME, *(one.key for one in schemes)]
    try:
        spec = validate(
            Loaded({key: value for key, value in given.items() if value is not None}, {}, ""), AdversarySpec
        )
        request = Request(
            out=Path("results", "-".join(words)) if arguments.out is None else Path(arguments.out),
            schemes=schemes,
            runtime_ns=spec.duration,
            seed=arguments.seed,
            jobs=arguments.jobs,
            confirm=arguments.confirm,
            command=(*command(NAME).split(), *arguments.words),
        )
    except ConfigError as error:
        raise named_as_typed(error, duration="runtime", max_rate_mbps="max-rate") from None
    return run_and_show(spec, request, arguments, error_console() if arguments.json else console())
