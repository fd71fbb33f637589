"""``ccgym benchmark``: run the catalogue of published experiments, each with its report, and write a summary table.

Exit status: 0, done; 1, a run failed; for other values see :mod:`ccgym.cli.common`.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ccgym.cli.command import Command
from ccgym.cli.common import STATUS_FAILED_RUN, console, print_table, say
from ccgym.cli.experiments import perform, request, show_failures
from ccgym.cli.options import JOBS, NO_FIGURES, QUICK, SEED, cluster, connected
from ccgym.errors import ConfigError
from ccgym.invocation import command

if TYPE_CHECKING:
    from ccgym.evaluation.cluster import Cluster
    from ccgym.evaluation.run import Contender
    from ccgym.experiments.catalogue import Catalogue

_DESCRIPTION: Final = """\
Run the catalogue of published experiments (configs/experiments/benchmark.yaml) for one scheme or several: RFC 9743,
ccperf, C4's tests, BBR's matrices, the studies of Giacomoni and Parisis, RFC 8867, ccBench, Prudentia. Each part has
its own report below the results directory. benchmark.md has a line per part, and benchmark.csv a line per experiment
and scheme. `ccgym report site` makes a website from the results. After an interruption, the same command continues.
"""

_EXAMPLES: Final = """\
  ccgym benchmark --list                       the parts
  ccgym benchmark reno --quick                 all parts, coarse and fast
  ccgym benchmark bbr runs/mine --only c4,rfc9743
  ccgym benchmark all --quick --out results/all && ccgym report site results/all
"""


def _benchmark(arguments: argparse.Namespace) -> int:
    from ccgym.evaluation.frames import rows_to_csv
    from ccgym.evaluation.run import parse_contenders
    from ccgym.experiments.catalogue import load_catalogue
    from ccgym.files import atomic_write

    catalogue = load_catalogue()
    if arguments.only is not None:
        catalogue = catalogue.only(arguments.only)
    if arguments.list:
        print_table(("part", "description"), list(catalogue.parts.items()))
        return 0
    if not arguments.schemes:
        raise ConfigError(
            "argument-missing",
            "no scheme",
            where="SCHEME",
            expected="one or more schemes, such as reno",
            hint="name a scheme, or list the parts with --list",
        )
    schemes = parse_contenders(",".join(arguments.schemes), "SCHEME")
    words = ["benchmark", *(one.key for one in schemes), *(["quick"] if arguments.quick else [])]
    out = request(arguments, schemes, words).out
    rows: list[dict[str, str]] = []
    scores: list[dict[str, str]] = []
    failed = 0
    with connected(arguments) as joined:
        for name, what in catalogue.parts.items():
            row, own, failures = _part(arguments, name, what, schemes, out, joined)
            rows.append(row)
            scores += own
            failed += failures
            atomic_write(out / "benchmark.md", _markdown(catalogue, rows))
            atomic_write(out / "benchmark.csv", rows_to_csv(scores))
    print_table(("part", "passed", "runs", "time", "report"), [tuple(row.values())[:5] for row in rows])
    say(f"table  {out / 'benchmark.md'}\nscores {out / 'benchmark.csv'}")
    return STATUS_FAILED_RUN if failed else 0


def _part(
    arguments: argparse.Namespace,
    name: str,
    what: str,
    schemes: tuple[Contender, ...],
    out: Path,
    joined: Cluster | None,
) -> tuple[dict[str, str], list[dict[str, str]], int]:
    """Run a part and write its report.

    Returns:
        The part's row of the table, the results of each scheme in its experiments, and the number of failed runs.
    """
    from ccgym.experiments.load import load_experiment

    spec = load_experiment(name, quick=arguments.quick, where="benchmark")
    place = out / name.rpartition("/")[2]
    asked = request(arguments, schemes, [], out=place, command=_words(arguments, name, schemes))
    shown_on = console()
    shown_on.print(f"{name}: {what}")
    started = time.monotonic()
    result, written = perform(spec, asked, joined, shown_on, figures=not arguments.no_figures)
    show_failures(result.failures, shown_on)
    row = {
        "part": name,
        "passed": _passed(result),
        "runs": str(_runs(result)),
        "time": f"{time.monotonic() - started:.0f} s",
        "report": str(written[0].file.relative_to(out)),
        "what": what,
    }
    return row, [{"part": name, **score} for score in result.scores()], len(result.failures)


def _words(arguments: argparse.Namespace, name: str, schemes: tuple[Contender, ...]) -> tuple[str, ...]:
    """Return the command that runs only this part."""
    words = [*command("evaluate").split(), "--experiment", name, "--schemes", ",".join(one.text for one in schemes)]
    words += ["--quick"] if arguments.quick else []
    words += [] if arguments.runs is None else ["--runs", str(arguments.runs)]
    words += [] if arguments.seed is None else ["--seed", str(arguments.seed)]
    return tuple(words)


def _passed(result: Any) -> str:
    """Return the number of experiments that each scheme passed, or for a league, each scheme's rating."""
    from ccgym.experiments.views.results import ExperimentResults

    if isinstance(result, ExperimentResults):
        texts = {style.label: result.passed_text(style.key) for style in result.styles}
        return ", ".join(f"{label} {text}" for label, text in texts.items() if text) or "numbers only"
    places = next(iter(result.rankings.values()))
    return ", ".join(f"{place.label} rating {place.score.mean:.2f}" for place in places)


def _runs(result: Any) -> int:
    from ccgym.experiments.views.results import ExperimentResults

    if isinstance(result, ExperimentResults):
        return sum(len(outcome.runs) for outcome in result.outcomes.values())
    return sum(len(one.places) * len(one.members) for one in result.sections)


def _markdown(catalogue: Catalogue, rows: list[dict[str, str]]) -> str:
    from ccgym.report.table import Column, Row, Table

    columns = [Column(name, name, align="left") for name in ("part", "what", "passed", "runs", "time", "report")]
    linked = [{**row, "report": f"[{Path(row['report']).name}]({row['report']})"} for row in rows]
    return f"# {catalogue.title}\n\n{Table(columns, [Row(row) for row in linked]).markdown()}"


COMMAND: Final = Command(
    "benchmark",
    run=_benchmark,
    description=_DESCRIPTION,
    examples=_EXAMPLES,
    options={
        "[SCHEME...] as schemes": "schemes, as in `ccgym evaluate --schemes`",
        "--list": "list the parts and run none",
        "--only A,B": "only these parts",
        **QUICK,
        "--runs N": "repetitions of every condition (default: each part's own)",
        **JOBS,
        **cluster("make the runs"),
        **SEED,
        "-o, --out DIRECTORY": "results directory (default: results/benchmark-SCHEMES)",
        **NO_FIGURES,
    },
    reads={"out": str},
)
