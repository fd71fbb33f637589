"""``ccgym evaluate --suite NAME``: many paths or tests in one go.

Whatever the suite, this reads the arguments, shows how it goes, prints its summary and says where its files are.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ccgym.cli.common import PIPE_WIDTH, option
from ccgym.errors import ConfigError
from ccgym.invocation import command
from ccgym.units import parse_time

if TYPE_CHECKING:
    from rich.console import Console

    from ccgym.evaluation.suites.protocol import Suite, SuiteRequest

STATUS_FAILED_RUN: Final = 1
"""Exit status when a run failed."""

_NOT_OF_SUITES: Final = {
    "trace": "a suite has its own paths",
    "mahimahi": "a suite has its own paths",
    "flows": "a suite has its own flows",
    "interval": "a suite has its own flows",
    "logs": "run the path in question alone, with --trace and --logs",
    "max_memory": "its paths need far less than the default",
}
"""Options that make no sense with a suite, and what to do."""


def evaluate_suite(arguments: argparse.Namespace, words: Sequence[str], shown_on: Console) -> int:
    """Run a suite and return the exit status.

    Args:
        arguments: The command line, checked as far as it concerns every evaluation.
        words: The same as it was typed.
        shown_on: Where people read.

    Raises:
        CcgymError: The command makes no sense, or the directory is another suite's.
    """
    from ccgym.evaluation.suites import suite, suite_report
    from ccgym.evaluation.suites.directory import claim

    for name, hint in _NOT_OF_SUITES.items():
        if getattr(arguments, name) is not None:
            option_name = f"--{name.replace('_', '-')}"
            raise ConfigError(
                f"{option_name} together with --suite", expected=f"--suite without {option_name}", hint=hint
            )
    chosen = suite(arguments.suite, "--suite")
    request = _request(arguments, words, chosen)
    if not arguments.no_figures:
        from ccgym.report.evaluation_report import require_drawing

        require_drawing("--no-figures")
    claim(chosen.name, request)
    shown_on.print(f"{chosen.name}: {chosen.title}", soft_wrap=True)
    shown_on.print(f"schemes: {', '.join(choice.text for choice in request.schemes)}; into {request.out}\n")
    from ccgym.cli.progress import Progress

    try:
        with Progress(shown_on) as progress:
            result = chosen.run(request, progress)
            report = suite_report(chosen.name)
            written = report.write(result, request.out, progress, figures=not arguments.no_figures)
    except KeyboardInterrupt:
        shown_on.print("\nfinished runs are kept: the same command goes on from here", style="yellow")
        raise
    # A file or a pipe has no width; a table cut to 80 columns would lose digits.
    width = None if shown_on.is_terminal else PIPE_WIDTH
    for part in report.terminal(result):
        shown_on.print(part, width=width)
    for failure in result.failures:
        shown_on.print(f"failed: {failure}", style="bold red", soft_wrap=True)
    if result.failures:
        shown_on.print("run the same command again to try the failed runs again\n", style="bold red")
    longest = max((len(file.title) for file in written), default=0)
    for file in written:
        shown_on.print(f"{file.title:<{longest}}  {file.file}", soft_wrap=True)
    if arguments.json:
        json.dump(result.to_json(), sys.stdout, ensure_ascii=False)
        sys.stdout.write("\n")
    return STATUS_FAILED_RUN if result.failures else 0


def _request(arguments: argparse.Namespace, words: Sequence[str], chosen: Suite) -> SuiteRequest:
    from ccgym.evaluation.backends import is_real
    from ccgym.evaluation.suites.directory import default_directory
    from ccgym.evaluation.suites.protocol import SuiteRequest
    from ccgym.schemes.registry import parse_schemes

    if arguments.runs is not None and not 1 <= arguments.runs <= 10_000:
        raise ConfigError(f"{arguments.runs}", where="--runs", expected="a whole number from 1 to 10000")
    if not 0 <= arguments.seed < 2**63:
        raise ConfigError(f"{arguments.seed}", where="--seed", expected=f"a whole number from 0 to {2**63 - 1}")
    if arguments.schemes is None:
        schemes = tuple(chosen.schemes(real=is_real(arguments.backend)))
    else:
        schemes = tuple(parse_schemes(arguments.schemes, "--schemes"))
    runtime_ns = None if arguments.runtime is None else option("--runtime", parse_time, arguments.runtime)
    request = SuiteRequest(
        schemes=schemes,
        out=Path(),
        runs=arguments.runs,
        runtime_ns=runtime_ns,
        seed=arguments.seed,
        backend=arguments.backend,
        jobs=arguments.jobs,
        repeat_limited=arguments.repeat_limited,
        quick=arguments.quick,
        command=(*command("evaluate").split(), *words),
    )
    out = default_directory(chosen.name, request) if arguments.out is None else Path(arguments.out)
    return replace(request, out=out)
