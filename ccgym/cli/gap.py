"""``ccgym gap``: the same schemes in the simulator and over real packets, and how far apart they are.

Exit status: 0, done, whatever the gap; 1, a run failed, a backend that was asked for ran nothing, or there was only one
to run on; for the rest see :mod:`ccgym.cli.common`. Without --backends, those that do not work here are left out, and
the report says why.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ccgym.cli.common import (
    PIPE_WIDTH,
    HelpFormatter,
    add_output,
    add_path,
    add_repeat_limited,
    add_runtime,
    add_seed,
    check_repeat_limited,
    chosen_path,
    console,
    directory_name,
    error_console,
    named_as_typed,
    option,
    run,
)
from ccgym.errors import ConfigError
from ccgym.invocation import command
from ccgym.units import parse_time

if TYPE_CHECKING:
    from rich.console import Console

    from ccgym.evaluation.engine import Observer
    from ccgym.evaluation.experiment import Experiment
    from ccgym.evaluation.gap import Gap

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


def parser() -> argparse.ArgumentParser:
    """The command line of ``ccgym gap``."""
    made = argparse.ArgumentParser(
        prog="ccgym gap", description=_DESCRIPTION, epilog=_EXAMPLES, formatter_class=HelpFormatter, allow_abbrev=False
    )
    path = made.add_argument_group("path (one of the two)")
    add_path(path)
    made.add_argument(
        "--schemes", default="bbr,cubic", metavar="A,B", help="schemes, as in `ccgym evaluate` (default: bbr,cubic)"
    )
    made.add_argument(
        "--backends",
        metavar="A,B",
        help="what to compare (default: those of sim, emulated and mahimahi that work here)",
    )
    made.add_argument("--runs", type=int, default=3, metavar="N", help="runs per scheme and backend (default: 3)")
    add_runtime(made)
    add_seed(made)
    add_repeat_limited(made)
    made.add_argument(
        "--host-jitter",
        default="0ms",
        metavar="TIME",
        help="simulated acknowledgements reach the sender later by up to this, at random, as on any host: shows what "
        "is chance where such trifles decide; 0.1ms is typical (default: 0ms)",
    )
    made.add_argument(
        "--host-start",
        default="0ms",
        metavar="TIME",
        help="simulated flows begin up to this late, at random; with real packets 0.2 to 0.6ms is typical (default: "
        "0ms)",
    )
    made.add_argument("--sim-runs", type=int, metavar="N", help="runs in the simulator (default: as --runs)")
    add_output(made, "the gap", "results/NAME-gap")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``ccgym gap`` and return its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    arguments = parser().parse_args(words)
    return run(lambda: _gap(arguments, words))


def _gap(arguments: argparse.Namespace, words: Sequence[str]) -> int:
    from ccgym.evaluation.backends import BACKENDS
    from ccgym.evaluation.gap import run_gap
    from ccgym.evaluation.run import parse_contenders

    shown_on = error_console() if arguments.json else console()
    path = chosen_path(arguments)
    schemes = parse_contenders(arguments.schemes, "--schemes")
    asked_for = None if arguments.backends is None else [name.strip() for name in arguments.backends.split(",")]
    backends = list(BACKENDS) if asked_for is None else [name for name in asked_for if name]
    runtime_ns = option("--runtime", parse_time, arguments.runtime)
    host_jitter_ns = option("--host-jitter", parse_time, arguments.host_jitter)
    host_start_ns = option("--host-start", parse_time, arguments.host_start)
    check_repeat_limited(arguments.repeat_limited)
    if not arguments.no_figures:
        from ccgym.report.evaluation_report import require_drawing

        require_drawing("--no-figures")
    out = Path(arguments.out) if arguments.out is not None else Path("results", f"{directory_name(path)}-gap")
    shown_on.print(path.describe(), soft_wrap=True)
    try:
        gap = run_gap(
            path,
            schemes,
            backends,
            out,
            runs=arguments.runs,
            runtime_ns=runtime_ns,
            seed=arguments.seed,
            repeat_limited=arguments.repeat_limited,
            host_jitter_ns=host_jitter_ns,
            host_start_ns=host_start_ns,
            sim_runs=arguments.sim_runs,
            observe=lambda experiment: _progress(experiment, shown_on),
            command=[*command("gap").split(), *words],
        )
    except ConfigError as error:
        raise named_as_typed(error) from None
    except KeyboardInterrupt:
        shown_on.print("\nfinished runs are kept: the same command continues from here", style="yellow")
        raise
    _report(gap, out, shown_on, figures=not arguments.no_figures)
    if arguments.json:
        json.dump(gap.as_dict(), sys.stdout, ensure_ascii=False)
        sys.stdout.write("\n")
    complaints = _complaints(gap, chosen=asked_for is not None)
    for complaint in complaints:
        error_console().print(f"error: {complaint}", style="bold red")
    return 1 if complaints or any(results.failures for results in gap.results.values()) else 0


def _complaints(gap: Gap, *, chosen: bool) -> list[str]:
    """What was to run and did not; ``chosen`` says that the user named the backends."""
    missing = {**gap.left_out, **gap.without_runs} if chosen else gap.without_runs
    made = [f"nothing ran on {name}: {reason}" for name, reason in missing.items()]
    if not chosen and len(gap.results) == 1:
        made.append(f"only {next(iter(gap.results))} ran: there is nothing to compare it with")
    return made


@contextmanager
def _progress(experiment: Experiment, shown_on: Console) -> Iterator[Observer]:
    from ccgym.cli.progress import Progress

    runtime_s = experiment.runtime_ns / 1e9
    shown_on.print(
        f"\n{experiment.backend}: {len(experiment.schemes)} schemes × {experiment.runs} runs of {runtime_s:g} s"
    )
    with Progress(shown_on, runtime_s if experiment.real else None) as progress:
        yield progress


def _report(gap: Gap, out: Path, shown_on: Console, *, figures: bool) -> None:
    from ccgym.evaluation.gap import GAP_FILE
    from ccgym.report.evaluation_report import write_tables
    from ccgym.report.gap_report import (
        HTML_FILE,
        MARKDOWN_FILE,
        TOLERANCES,
        build_gap_report,
        gap_table,
        write_gap_table,
    )

    table = gap_table(gap)
    if not gap.results:
        for line in table.notes:
            shown_on.print(line, style="yellow", soft_wrap=True)
        raise ConfigError("nothing ran", where="--backends", expected="one or more that work here")
    write_gap_table(gap, out)
    for name, results in gap.results.items():
        write_tables(results, gap.directories[name])
    if figures:
        build_gap_report(gap, out)
    shown_on.print()
    shown_on.print(table.terminal(), width=None if shown_on.is_terminal else PIPE_WIDTH)
    shown_on.print(TOLERANCES, style="dim", soft_wrap=True)
    for line in table.notes:
        shown_on.print(line, style="yellow", soft_wrap=True)
    files = [("numbers", GAP_FILE), ("table", MARKDOWN_FILE)]
    if figures:
        files = [("report", HTML_FILE), ("figure", "gap_series.svg"), *files]
    shown_on.print()
    for name, file in files:
        shown_on.print(f"{name:<9} {out / file}", soft_wrap=True)
