"""``ccgym gap``: the experiment ``gap`` with the path, schemes and backends of the command line.

Exit status: 0, done, also with a gap; 1, a run failed, a backend that was asked for ran nothing, or there was only one
to run on; for the rest see :mod:`ccgym.cli.common`. Without --backends, those that do not work here are left out, and
the report says why.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from ccgym.cli.common import (
    HelpFormatter,
    add_output,
    add_path,
    add_repeat_limited,
    add_seed,
    check_repeat_limited,
    chosen_path,
    console,
    directory_name,
    error_console,
    named_as_typed,
)
from ccgym.errors import ConfigError
from ccgym.invocation import command

_DESCRIPTION: Final = """\
Run the same schemes with the same seeds in the simulator, over our emulated path and over
mahimahi, and show throughput, 95th-percentile delay and loss side by side, with time series
overlaid. Started again, it continues where it stopped.
"""

_EXAMPLES: Final = """\
examples:
  ccgym gap --trace 77.72mbps --schemes bbr,cubic,tcp:bbr,tcp:cubic
      ours and the kernel's, on all backends that work here; into results/77.72mbps-gap
  ccgym gap --trace 12mbps --schemes aurora --backends sim,emulated --runs 1 --runtime 10
      does the pretrained policy do over real packets what it does in the simulator?
  ccgym gap --trace 3.04mbps-poisson --schemes eagle --host-jitter 0.1ms --host-start 1ms --sim-runs 20
      the same where fractions of a millisecond decide what a policy does
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``gap``."""
    made = commands.add_parser(
        "gap",
        help="how far simulated results are from those of real packets",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    path = made.add_argument_group("path (one of the two)")
    add_path(path)
    made.add_argument("--schemes", metavar="A,B", help="schemes, as in `ccgym evaluate` (default: bbr,cubic)")
    made.add_argument(
        "--backends",
        metavar="A,B",
        help="what to compare (default: those of sim, emulated and mahimahi that work here)",
    )
    made.add_argument("--runs", type=int, metavar="N", help="runs per scheme and backend (default: 3)")
    made.add_argument("--runtime", metavar="TIME", help="length of a run: seconds, or with a unit (default: 30)")
    add_seed(made)
    add_repeat_limited(made)
    made.add_argument(
        "--host-jitter",
        metavar="TIME",
        help="simulated acknowledgements reach the sender later by up to this, at random, as on any host: shows what "
        "is chance where fractions of a millisecond decide; 0.1ms is typical (default: 0ms)",
    )
    made.add_argument(
        "--host-start",
        metavar="TIME",
        help="simulated flows begin up to this late, at random; with real packets 0.2 to 0.6ms is typical (default: "
        "0ms)",
    )
    made.add_argument("--sim-runs", type=int, metavar="N", help="runs in the simulator (default: as --runs)")
    add_output(made, "the gap", "results/NAME-gap")
    made.set_defaults(run=_gap)


def _gap(arguments: argparse.Namespace) -> int:
    from ccgym.cli.evaluate_experiment import chosen_schemes, run_and_show
    from ccgym.config.configurations import find_config
    from ccgym.config.yaml_loader import Loaded, load_yaml, validate
    from ccgym.experiments.gap_spec import GapSpec
    from ccgym.experiments.load import FOLDERS
    from ccgym.experiments.request import Request

    path = chosen_path(arguments)
    check_repeat_limited(arguments.repeat_limited)
    backends = arguments.backends
    given = {
        "backends": None if backends is None else [name for one in backends.split(",") if (name := one.strip())],
        "runs": arguments.runs,
        "sim_runs": arguments.sim_runs,
        "duration": arguments.runtime,
        "host_jitter": arguments.host_jitter,
        "host_start": arguments.host_start,
    }
    says = load_yaml(find_config("gap", folders=FOLDERS)).data
    data = {**says, "name": "gap", "path": path, **{key: value for key, value in given.items() if value is not None}}
    try:
        spec = validate(Loaded(data, {}, ""), GapSpec)
        request = Request(
            out=Path(arguments.out) if arguments.out is not None else Path("results", f"{directory_name(path)}-gap"),
            schemes=chosen_schemes(arguments, spec),
            seed=arguments.seed,
            repeat_limited=arguments.repeat_limited,
            command=(*command("gap").split(), *arguments.words),
        )
        return run_and_show(spec, request, arguments, error_console() if arguments.json else console())
    except ConfigError as error:
        raise named_as_typed(error, duration="runtime") from None
