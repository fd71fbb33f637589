"""``ccgym portrait``: how a scheme behaves on a few paths, in one figure.

Exit status: 0, the figure is written; for the rest see :mod:`ccgym.cli.common`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ccgym.cli.common import HelpFormatter, add_runtime, add_seed, option, print_table, say
from ccgym.errors import ConfigError, SimulationError, located, shown
from ccgym.units import parse_time

if TYPE_CHECKING:
    from ccgym.config.path import NetworkPath
    from ccgym.evaluation.run import Contender
    from ccgym.report.figures.portrait import Column
    from ccgym.schemes.style import SchemeStyle

DEFAULT_PATHS: Final = ("77.72mbps", "3.04mbps-poisson", "114.68mbps")
"""Calibrated paths that ask different questions: does random loss before a shallow queue slow it down; does it fill the
deep queue of a slow path; does it fill a fast one. They need no trace that is not there everywhere."""

NOTHING: Final = "none"
"""In place of the second scheme."""
DEFAULT_COMPARED: Final = ("bbr", "cubic")
"""The second scheme, and the one that is compared with it where it is the first."""
MAX_PATHS: Final = 4
"""More columns would not be legible on a page."""

_DESCRIPTION: Final = """\
Draw how a scheme behaves on a few paths: delivered rate and capacity, one-way delay
below it, and mean throughput, 95th-percentile delay and loss, with a second scheme in gray.
"""

_EXAMPLES: Final = """\
examples:
  ccgym portrait bbr --compare cubic -o bbr.png
  ccgym portrait aurora -o aurora.svg
  ccgym portrait runs/mine --compare none --trace 100.42mbps,ccperf-step -o mine.pdf
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``portrait``."""
    made = commands.add_parser(
        "portrait",
        help="how a scheme behaves on a few paths, in one figure",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument("scheme", metavar="SCHEME", help="a scheme or policy, a run directory, or a .onnx file")
    made.add_argument(
        "--compare", metavar="SCHEME", help="a second scheme, or none (default: bbr; for bbr itself cubic)"
    )
    made.add_argument(
        "--trace",
        default=",".join(DEFAULT_PATHS),
        metavar="A,B,C",
        help=f"one to four paths: names, files or a mahimahi command line (default: {','.join(DEFAULT_PATHS)})",
    )
    add_runtime(made)
    add_seed(made)
    made.add_argument("-o", "--out", type=Path, required=True, metavar="FILE", help="a .png, .svg or .pdf file")
    made.set_defaults(run=_portrait)


def _portrait(arguments: argparse.Namespace) -> int:
    from ccgym.evaluation.engine import Reduction, measure
    from ccgym.evaluation.prepared_run import MAX_SEED
    from ccgym.evaluation.run import Run
    from ccgym.report.figures import figure_path, require_drawing

    schemes = _schemes(arguments.scheme, arguments.compare)
    paths = _paths(arguments.trace)
    runtime_ns = option("--runtime", parse_time, arguments.runtime)
    if runtime_ns <= 0:
        raise ConfigError(
            "quantity-malformed",
            shown(arguments.runtime),
            expected="a positive time, like 30 or 30s",
            where="--runtime",
        )
    if not 0 <= arguments.seed <= MAX_SEED:
        raise ConfigError(
            "out-of-range", str(arguments.seed), expected=f"a whole number from 0 to {MAX_SEED}", where="--seed"
        )
    require_drawing()
    from ccgym.report.figures.portrait import Column, portrait_figure
    from ccgym.report.style import house_style, save

    file = option("--out", figure_path, str(arguments.out))
    runs = [Run(path, scheme, runtime_ns, arguments.seed) for path in paths for scheme in schemes]
    outcomes = measure(runs, reduce=Reduction("record", 1, lambda run, record: record))
    for outcome in outcomes:
        if outcome.error is not None:
            raise SimulationError(
                "run-failed", outcome.error, where=f"{outcome.run.contender.text}, {outcome.run.path.name}"
            )
    records = iter([outcome.data for outcome in outcomes])
    columns = [Column(path, [next(records) for _ in schemes]) for path in paths]
    styles = [scheme.style for scheme in schemes]
    with house_style():
        save(portrait_figure(styles, columns), file, parents=True)
    _show(styles, columns)
    say(f"portrait  {arguments.out}")
    return 0


def _schemes(scheme: str, compared: str | None) -> tuple[Contender, ...]:
    """The portrayed scheme and, unless that is none, the one to compare it with."""
    from ccgym.evaluation.run import contender, contenders
    from ccgym.schemes.reading import parse_scheme

    chosen = [contender(parse_scheme(scheme, "SCHEME"))]
    if compared is None:
        compared = DEFAULT_COMPARED[chosen[0].key == DEFAULT_COMPARED[0]]
    if compared != NOTHING:
        chosen.append(contender(parse_scheme(compared, "--compare")))
    for one, where in zip(chosen, ("SCHEME", "--compare"), strict=False):
        one.refuse("simulator", where)
    return contenders(chosen, "--compare")


def _paths(text: str) -> list[NetworkPath]:
    from ccgym.config.mahimahi import looks_like_mahimahi
    from ccgym.config.path import NetworkPath

    # Arguments of mahimahi's queues hold commas.
    parts = [text] if looks_like_mahimahi(text) else [part.strip() for part in text.split(",") if part.strip()]
    if not 1 <= len(parts) <= MAX_PATHS:
        raise ConfigError(
            "wrong-count", f"{len(parts)} paths", expected=f"1 to {MAX_PATHS}, separated by commas", where="--trace"
        )
    with located("--trace"):
        paths = [NetworkPath.from_any(part) for part in parts]
    return paths


def _show(styles: Sequence[SchemeStyle], columns: Sequence[Column]) -> None:
    from ccgym.report.figures.portrait import number_texts

    measured = ("Mbit/s", "p95 delay, ms", "loss")
    rows = []
    for column in columns:
        for place, (style, record) in enumerate(zip(styles, column.runs, strict=True)):
            name = "" if place else column.path.name or "unnamed path"
            rows.append((name, style.label, *number_texts(record.flows[0])))
    print_table(("path", "scheme", *measured), rows, measured)
