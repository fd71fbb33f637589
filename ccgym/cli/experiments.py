"""Run experiments of every kind, for all commands with a request, results and a report; ``ccgym rfc9743`` and
``ccgym adversary``.

Exit status: 0, done, also if thresholds are missed or nothing was found; 1, a run failed; for other values see
:mod:`ccgym.cli.common`.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ccgym.cli.command import Command
from ccgym.cli.common import (
    STATUS_ERROR,
    STATUS_FAILED_RUN,
    STATUS_LEFT,
    console_for,
    has_errors,
    say_json,
)
from ccgym.cli.evaluation_output import size_text
from ccgym.cli.options import JOBS, QUICK, SEED, cluster, connected, given, output, seconds
from ccgym.errors import located
from ccgym.units import parse_rate

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console

    from ccgym.config.path import NetworkPath
    from ccgym.evaluation.cluster import Cluster
    from ccgym.evaluation.run import Contender
    from ccgym.experiments.comparison import Comparison
    from ccgym.experiments.request import Request, Written
    from ccgym.experiments.spec import ExperimentSet

    _Model = TypeVar("_Model", bound=BaseModel)

_KINDS: Final = {
    "adversary": ("ccgym.experiments.adversary:run_adversary", "ccgym.report.adversary_report"),
    "experiment": ("ccgym.experiments.views.verdicts:run_experiments", "ccgym.report.experiment_report"),
    "gap": ("ccgym.experiments.views.gap:run_gap", "ccgym.report.gap_report"),
    "league": ("ccgym.experiments.views.league:run_league", "ccgym.report.league_report"),
    "requirements": ("ccgym.experiments.views.requirements:run_requirements", "ccgym.report.requirements_report"),
    "scorecard": ("ccgym.experiments.views.scorecard:run_scorecard", "ccgym.report.scorecard_report"),
}
"""By kind of experiment: the function that runs it, and the function that shows it."""

_ASKED: Final = (
    "runs",
    "runtime_ns",
    "seed",
    "backend",
    "jobs",
    "repeat_limited",
    "retries",
    "budget_s",
    "quick",
    "confirm",
)
"""Names of options that become entries of a request."""


def spec_of(model: type[_Model], data: Mapping[str, Any]) -> _Model:
    """Return an experiment from the values of options.

    Raises:
        ConfigError: A value is wrong; the error names its key.
    """
    from ccgym.config.yaml_loader import Loaded, validate

    return validate(Loaded(dict(data), {}, ""), model)


def request(
    arguments: argparse.Namespace, schemes: Sequence[Contender], words: Sequence[str], **changes: Any
) -> Request:
    """Return the request for an experiment.

    Args:
        arguments: The command line.
        schemes: The tested schemes.
        words: The default directory's name in results/, joined by dashes.
        **changes: Entries that differ from the options.
    """
    from ccgym.experiments.request import Request

    asked = {name: getattr(arguments, name) for name in _ASKED if hasattr(arguments, name)}
    out = Path("results", "-".join(words)) if arguments.out is None else Path(arguments.out)
    return Request(**{**asked, "out": out, "schemes": tuple(schemes), "command": arguments.typed, **changes})


def perform(
    spec: ExperimentSet | Comparison,
    asked: Request,
    cluster: Cluster | None,
    shown_on: Console,
    *,
    figures: bool,
) -> tuple[Any, Sequence[Written]]:
    """Run an experiment, write its report, and return the result and the files."""
    from ccgym.cli.progress import Progress
    from ccgym.experiments.request import claim_directory

    runner, reporter = _KINDS[spec.kind]
    module, _, function = runner.partition(":")
    report = importlib.import_module(reporter)
    claim_directory(spec.name, asked)
    with Progress(shown_on) as progress:
        result = getattr(importlib.import_module(module), function)(spec, replace(asked, cluster=cluster), progress)
        return result, report.write(result, asked.out, progress, figures=figures)
    raise AssertionError


def run_and_show(spec: ExperimentSet | Comparison, asked: Request, arguments: argparse.Namespace) -> int:
    """Run an experiment, show its results, and return the exit status.

    Args:
        spec: The experiment.
        asked: The request.
        arguments: The options, with ``no_figures`` and ``json``.
    """
    shown_on = console_for(arguments)
    if has_errors(_paths(spec), shown_on):
        return STATUS_ERROR
    if not arguments.no_figures:
        from ccgym.report.figures import require_drawing

        require_drawing(instead="--no-figures")
    shown_on.print(f"{spec.name}: {spec.title}", soft_wrap=True)
    shown_on.print(f"schemes: {', '.join(one.text for one in asked.schemes or ())}; into {asked.out}\n")
    try:
        with connected(arguments) as cluster:
            result, written = perform(spec, asked, cluster, shown_on, figures=not arguments.no_figures)
    except KeyboardInterrupt:
        shown_on.print("\nfinished runs are kept: the same command continues from here", style="yellow")
        raise
    for part in importlib.import_module(_KINDS[spec.kind][1]).terminal(result):
        shown_on.print(part)
    show_failures(result.failures, shown_on)
    if result.failures:
        shown_on.print("run the same command again to try the failed runs again\n", style="bold red")
    longest = max((len(file.title) for file in written), default=0)
    for file in written:
        shown_on.print(f"{file.title:<{longest}}  {file.file}", soft_wrap=True)
    shown_on.print(size_text(asked.out), style="dim", soft_wrap=True)
    if arguments.json:
        say_json(result.to_json(), None)
    if result.failures:
        return STATUS_FAILED_RUN
    return STATUS_LEFT if asked.budget_s is not None and result.left else 0


def show_failures(failures: Iterable[object], shown_on: Console) -> None:
    """Print a line for each failure."""
    for failure in failures:
        shown_on.print(f"failed: {failure}", style="bold red", soft_wrap=True)


def _paths(spec: ExperimentSet | Comparison) -> Iterable[NetworkPath]:
    """Return the paths of an experiment that are fixed, without paths that are drawn."""
    from ccgym.experiments.expand import paths
    from ccgym.experiments.gap_spec import GapSpec
    from ccgym.experiments.spec import ExperimentSet

    if isinstance(spec, ExperimentSet):
        return paths(spec.experiments)
    return [spec.path] if isinstance(spec, GapSpec) else []  # a scorecard's paths are in the catalog


def chosen_schemes(arguments: argparse.Namespace, spec: ExperimentSet | Comparison) -> tuple[Contender, ...]:
    """Return the schemes of ``--schemes``; without this option, the schemes of the experiment."""
    from ccgym.evaluation.run import contenders, parse_contenders

    if arguments.schemes is None:
        return contenders(spec.schemes, "schemes")
    return parse_contenders(arguments.schemes, "--schemes")


# --- RFC 9743 and the adversary ---


def _rfc9743(arguments: argparse.Namespace) -> int:
    from ccgym.evaluation.run import parse_contenders
    from ccgym.experiments.load import load_experiment
    from ccgym.experiments.spec import ExperimentSet

    spec = load_experiment("rfc9743", quick=arguments.quick)
    assert isinstance(spec, ExperimentSet), "the rows of the RFC are a set of experiments"
    schemes = parse_contenders(arguments.scheme, "SCHEME")
    sections = arguments.only
    if sections is not None:
        with located("--only"):
            spec = spec.only(sections)
    words = ["rfc9743", *(one.key for one in schemes), *(sections or []), *(["quick"] if arguments.quick else [])]
    return run_and_show(spec, request(arguments, schemes, words), arguments)


def _mbps(text: str) -> float:
    return float(parse_rate(text)) / 1e6


def _adversary(arguments: argparse.Namespace) -> int:
    from ccgym.evaluation.run import parse_contenders
    from ccgym.experiments.adversary_search import NAME, AdversarySpec

    keys = ("evaluations", "budget_s", "finds", "duration", "runs", "max_rate_mbps")
    schemes = parse_contenders(",".join(arguments.schemes), "SCHEME")
    spec = spec_of(AdversarySpec, given(arguments, *keys))
    words = [NAME, *(one.key for one in schemes)]
    asked = request(arguments, schemes, words, runtime_ns=spec.duration, runs=None, budget_s=None)
    return run_and_show(spec, asked, arguments)


RFC9743: Final = Command(
    "rfc9743",
    run=_rfc9743,
    description="""\
Evaluate a scheme by RFC 9743 (BCP 133, "Specifying New Congestion Control Algorithms"), section by section, and
write a report: HTML, Markdown, JSON and CSV. Every row has a measure, a threshold with its reason, the result with its
95 % interval, and the command that runs it again. The thresholds are ccgym's; the RFC has none. Requirements without
a test are listed, too. After an interruption, the same command continues.
""",
    examples="""\
  ccgym rfc9743 cubic --quick                  one repetition, fewer conditions: takes seconds
  ccgym rfc9743 runs/mine                      the whole report; into results/rfc9743-mine
  ccgym rfc9743 bbr --only 5.1.3,7             two parts of it
  ccgym rfc9743 cubic --confirm 4              repeat four of its runs with real packets
""",
    options={
        "SCHEME": "a scheme, with parameters; as in `ccgym evaluate --schemes`",
        "--only A,B": "only these sections of the RFC, such as 5.1.1,7",
        **QUICK,
        "--runs N": "repetitions of every condition (default: 3 to 5)",
        "--confirm N in 0..100 = 0": "repeat N of the simulated runs with real packets (backend emulated), and "
        "report whether both agree; each takes up to a minute",
        **JOBS,
        **cluster("make the simulated runs"),
        **SEED,
        **output("the report", "results/rfc9743-SCHEME"),
    },
)

ADVERSARY: Final = Command(
    "adversary",
    run=_adversary,
    description="""\
Search for paths on which a scheme is far from the oracle and the oracle does well: varying rates, round-trip times,
buffers, random loss, jitter, ACK aggregation. Each found path is made as simple as possible, measured with
several seeds for the scheme, the oracle and classic schemes, run with real packets if this machine supports them,
and written as a named path. After an interruption, the same command continues.
""",
    examples="""\
  ccgym adversary cubic                        three minutes of search; into results/adversary-cubic
  ccgym adversary bbr copa runs/mine --budget 10min --finds 5
  ccgym adversary vegas --evaluations 500 --confirm 0 --no-figures
  ccgym evaluate --trace results/adversary-cubic/paths/adversary-cubic-1.yaml --schemes cubic,oracle
""",
    options={
        "SCHEME... as schemes": "a scheme, with parameters; as in `ccgym evaluate --schemes`",
        "| --budget TIME as budget_s": "length of the search for each scheme, such as 10min (default: 3min)",
        "| --evaluations N": "or the number of candidates to try for each scheme",
        "--finds N": "max number of finds for each scheme (default: 3)",
        "--runtime TIME as duration": "length of a run: seconds, or with a unit (default: 20)",
        "--runs N": "runs of every scheme on a find (default: 5)",
        "--max-rate RATE as max_rate_mbps": "maximum rate of a path (default: 1gbps)",
        "--confirm N in 0..100 = 1": "repeat the first N finds of each scheme with real packets (backend "
        "emulated), if this machine supports them",
        **JOBS,
        **SEED,
        **output("the finds", "results/adversary-SCHEMES"),
    },
    reads={"budget_s": seconds, "duration": str, "max_rate_mbps": _mbps},
)
