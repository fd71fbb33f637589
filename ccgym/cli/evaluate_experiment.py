"""``ccgym evaluate --experiment NAME``: an experiment, a scorecard or a gap, read from YAML; and ``--sweep``.

This reads the arguments, shows how it goes, prints the summary and says where the files are.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from ccgym.cli.common import (
    PIPE_WIDTH,
    STATUS_ERROR,
    STATUS_FAILED_RUN,
    STATUS_LEFT,
    connected,
    has_errors,
    named_as_typed,
    option,
)
from ccgym.cli.evaluation_output import size_text
from ccgym.errors import ConfigError
from ccgym.invocation import command
from ccgym.units import parse_positive_time, parse_time

if TYPE_CHECKING:
    from rich.console import Console

    from ccgym.config.path import NetworkPath
    from ccgym.evaluation.run import Contender
    from ccgym.experiments.comparison import Comparison
    from ccgym.experiments.request import Request
    from ccgym.experiments.spec import ExperimentSet

_NOT_OF_SWEEPS: Final = {
    "random_order": "an experiment compares runs that do not depend on it",
    "grow": "an experiment always adds to what its directory holds",
    "raw_logs": "run the path in question alone, with --trace and --raw-logs",
    "logs": "run the path in question alone, with --trace and --logs",
    "remote": "what lies between two machines cannot be varied: run it alone",
    "max_memory": "its paths need far less than the default",
}
"""Options that make no sense with many paths, and what to do."""

_NOT_OF_EXPERIMENTS: Final = {
    "trace": "an experiment has its own paths",
    "mahimahi": "an experiment has its own paths",
    "flows": "an experiment has its own flows",
    "interval": "an experiment has its own flows",
    **_NOT_OF_SWEEPS,
}
"""Options that make no sense with an experiment, and what to do."""

_KINDS: Final = {
    "adversary": ("ccgym.experiments.adversary:run_adversary", "ccgym.report.adversary_report"),
    "experiment": ("ccgym.experiments.run:run_experiments", "ccgym.report.experiment_report"),
    "gap": ("ccgym.experiments.gap:run_gap", "ccgym.report.gap_report"),
    "league": ("ccgym.experiments.league:run_league", "ccgym.report.league_report"),
    "requirements": ("ccgym.experiments.requirements:run_requirements", "ccgym.report.requirements_report"),
    "scorecard": ("ccgym.experiments.scorecard:run_scorecard", "ccgym.report.scorecard_report"),
}
"""What runs an experiment of each kind, and what shows it."""


def evaluate_experiment(arguments: argparse.Namespace, words: Sequence[str], shown_on: Console) -> int:
    """Run an experiment and return the exit status.

    Args:
        arguments: The command line, checked as far as it concerns every evaluation.
        words: The same as it was typed.
        shown_on: Where people read.

    Raises:
        CcgymError: The command makes no sense, or the directory is another experiment's.
    """
    used, without = (
        ("--sweep", _NOT_OF_SWEEPS) if arguments.experiment is None else ("--experiment", _NOT_OF_EXPERIMENTS)
    )
    for name, hint in without.items():
        if getattr(arguments, name) is not None:
            option_name = f"--{name.replace('_', '-')}"
            raise ConfigError(
                "options-conflict",
                f"{option_name} together with {used}",
                expected=f"{used} without {option_name}",
                hint=hint,
            )
    if arguments.experiment is None:
        spec: ExperimentSet | Comparison = _swept_path(arguments)
        arguments.runtime = None  # now that of the experiment
    else:
        spec = _read(arguments)
    if arguments.budget is not None and spec.kind in ("scorecard", "gap"):
        raise ConfigError(
            "options-conflict", f"--budget with a {spec.kind}", expected="a path, a sweep, an experiment or a league"
        )
    try:
        request = _request(arguments, words, spec)
    except ConfigError as error:
        raise named_as_typed(error) from None
    return run_and_show(spec, request, arguments, shown_on)


def _read(arguments: argparse.Namespace) -> ExperimentSet | Comparison:
    """The experiment that the command names, with other values where it says so."""
    from ccgym.experiments.load import load_experiment
    from ccgym.experiments.spec import ExperimentSet
    from ccgym.experiments.sweep import parse_sweeps, with_sweeps

    spec = load_experiment(arguments.experiment, quick=arguments.quick)
    if not arguments.sweep:
        return spec
    if not isinstance(spec, ExperimentSet):
        raise ConfigError(
            "options-conflict",
            f"--sweep with a {spec.kind}",
            expected="an experiment that names what varies",
            hint="--sweep with --trace",
        )
    return with_sweeps(spec, parse_sweeps(arguments.sweep))


def _swept_path(arguments: argparse.Namespace) -> ExperimentSet:
    """The path that the command names, varied."""
    from ccgym.evaluation.backends import is_real
    from ccgym.evaluation.run import digest
    from ccgym.experiments.expand import PATH
    from ccgym.experiments.sweep import parse_sweeps, swept_path
    from ccgym.schemes.groups import compared_schemes

    if arguments.quick:
        raise ConfigError(
            "options-conflict", "--quick with --sweep", expected="--runs and --runtime, which say how long it takes"
        )
    sweeps = parse_sweeps(arguments.sweep)
    path = arguments.trace or arguments.mahimahi
    if (arguments.trace is not None) + (arguments.mahimahi is not None) + (PATH in sweeps) != 1:
        raise ConfigError(
            "exactly-one",
            "no path" if path is None else "more than one path",
            expected='one of --trace NAME|FILE, --mahimahi "COMMAND LINE" and --sweep path=A,B',
            hint="for example --trace 77.72mbps --sweep rtt=20ms,40ms",
        )
    base = [] if path is None else [f"mahimahi-{digest(path)[:8]}" if arguments.mahimahi else _name_of(path)]
    runtime = "30" if arguments.runtime is None else arguments.runtime
    interval = "0" if arguments.interval is None else arguments.interval
    return swept_path(
        path,
        sweeps,
        name="-".join([*base, *sweeps]),
        schemes=[one.text for one in compared_schemes(real=is_real(arguments.backend))],
        runtime_ns=option("--runtime", parse_positive_time, runtime),
        flows=1 if arguments.flows is None else arguments.flows,
        interval_ns=option("--interval", parse_time, interval),
    )


def _name_of(path: str) -> str:
    """What a path is called in files: ``77.72mbps`` of a name, a trace or a YAML file."""
    plain = re.sub(r"\.(?:trace|ya?ml)$", "", Path(path).name)
    return re.sub(r"[^\w.+-]+", "-", plain).strip("-.") or "path"


def runner_and_report(kind: str) -> tuple[Callable[..., Any], ModuleType]:
    """What runs an experiment of a kind, and the module that shows it."""
    runner, reporter = _KINDS[kind]
    module, _, function = runner.partition(":")
    return getattr(importlib.import_module(module), function), importlib.import_module(reporter)


def run_and_show(
    spec: ExperimentSet | Comparison, request: Request, arguments: argparse.Namespace, shown_on: Console
) -> int:
    """Run an experiment, show what came out, and return the exit status.

    Args:
        spec: The experiment.
        request: What is asked of it.
        arguments: ``no_figures`` and ``json``.
        shown_on: Where people read.
    """
    from ccgym.experiments.request import claim_directory

    if has_errors(_paths(spec), shown_on):
        return STATUS_ERROR
    if not arguments.no_figures:
        from ccgym.report.figures import require_drawing

        require_drawing(instead="--no-figures")
    claim_directory(spec.name, request)
    shown_on.print(f"{spec.name}: {spec.title}", soft_wrap=True)
    shown_on.print(f"schemes: {', '.join(one.text for one in request.schemes or ())}; into {request.out}\n")
    from ccgym.cli.progress import Progress

    run, report = runner_and_report(spec.kind)
    try:
        with connected(arguments) as cluster, Progress(shown_on) as progress:
            result = run(spec, replace(request, cluster=cluster), progress)
            written = report.write(result, request.out, progress, figures=not arguments.no_figures)
    except KeyboardInterrupt:
        shown_on.print("\nfinished runs are kept: the same command continues from here", style="yellow")
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
    shown_on.print(size_text(request.out), style="dim", soft_wrap=True)
    if arguments.json:
        json.dump(result.to_json(), sys.stdout, ensure_ascii=False)
        sys.stdout.write("\n")
    if result.failures:
        return STATUS_FAILED_RUN
    return STATUS_LEFT if request.budget_s is not None and result.left else 0


def _paths(spec: ExperimentSet | Comparison) -> Iterable[NetworkPath]:
    """The paths that an experiment is run over, as far as they are not drawn."""
    from ccgym.experiments.expand import paths
    from ccgym.experiments.gap_spec import GapSpec
    from ccgym.experiments.spec import ExperimentSet

    if isinstance(spec, ExperimentSet):
        return paths(spec.experiments)
    return [spec.path] if isinstance(spec, GapSpec) else []  # a scorecard's are those of the catalog


def chosen_schemes(arguments: argparse.Namespace, spec: ExperimentSet | Comparison) -> tuple[Contender, ...]:
    """The schemes that ``--schemes`` names; without it, those of the experiment."""
    from ccgym.evaluation.run import contenders, parse_contenders

    if arguments.schemes is None:
        return contenders(spec.schemes, "schemes")
    return parse_contenders(arguments.schemes, "--schemes")


def _request(arguments: argparse.Namespace, words: Sequence[str], spec: ExperimentSet | Comparison) -> Request:
    from ccgym.experiments.request import Request, default_directory

    request = Request(
        out=Path(),
        schemes=chosen_schemes(arguments, spec),
        runs=arguments.runs,
        runtime_ns=None if arguments.runtime is None else option("--runtime", parse_positive_time, arguments.runtime),
        seed=arguments.seed,
        backend=arguments.backend,
        jobs=arguments.jobs,
        repeat_limited=arguments.repeat_limited,
        retries=arguments.retries,
        budget_s=None if arguments.budget is None else option("--budget", parse_positive_time, arguments.budget) / 1e9,
        quick=arguments.quick,
        command=(*command("evaluate").split(), *words),
    )
    out = default_directory(spec.name, request) if arguments.out is None else Path(arguments.out)
    return replace(request, out=out)
