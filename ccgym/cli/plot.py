"""``ccgym plot``: draw the behavior of a scheme, a decision tree, learning curves, and results of searches.

Exit status: 0, the figure is written; for other values see :mod:`ccgym.cli.common`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ccgym.cli.command import Command
from ccgym.cli.common import print_table
from ccgym.cli.options import FIGURE, POLICY, RUNTIME, SEED, chosen_policy, draw
from ccgym.errors import ConfigError, SimulationError

if TYPE_CHECKING:
    from ccgym.config.path import NetworkPath
    from ccgym.evaluation.run import Contender
    from ccgym.report.figures.portrait import Column
    from ccgym.schemes.style import SchemeStyle

DEFAULT_PATHS: Final = ("77.72mbps", "3.04mbps-poisson", "114.68mbps")
"""Calibrated paths for different questions: does random loss before a shallow queue slow the scheme down; does it fill
the deep queue of a slow path; does it fill a fast path. Their traces are available on every machine."""

NOTHING: Final = "none"
"""Value of ``--compare`` for no second scheme."""
DEFAULT_COMPARED: Final = ("bbr", "cubic")
"""Default second scheme, and the second scheme if this one is the first."""
MAX_PATHS: Final = 4
"""Maximum number of columns: more columns would not be readable on a page."""


def _portrait(arguments: argparse.Namespace) -> int:
    from ccgym.evaluation.engine import Reduction, measure
    from ccgym.evaluation.experiment import check_range
    from ccgym.evaluation.prepared_run import MAX_SEED
    from ccgym.evaluation.run import Run
    from ccgym.report.figures.portrait import Column, portrait_figure

    schemes = _schemes(arguments.scheme, arguments.compare)
    check_range("seed", arguments.seed, 0, MAX_SEED)
    runs = [Run(path, scheme, arguments.runtime_ns, arguments.seed) for path in arguments.paths for scheme in schemes]
    outcomes = measure(runs, reduce=Reduction("record", 1, lambda run, record: record))
    for outcome in outcomes:
        if outcome.error is not None:
            raise SimulationError(
                "run-failed", outcome.error, where=f"{outcome.run.contender.text}, {outcome.run.path.name}"
            )
    records = iter([outcome.data for outcome in outcomes])
    columns = [Column(path, [next(records) for _ in schemes]) for path in arguments.paths]
    styles = [scheme.style for scheme in schemes]
    draw(lambda: portrait_figure(styles, columns), arguments)
    _show(styles, columns)
    return 0


def _schemes(scheme: str, compared: str | None) -> tuple[Contender, ...]:
    """Return the scheme to draw and, if there is one, the second scheme."""
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

    # Arguments of mahimahi's queues contain commas.
    parts = [text] if looks_like_mahimahi(text) else [part.strip() for part in text.split(",") if part.strip()]
    if not 1 <= len(parts) <= MAX_PATHS:
        raise ConfigError("wrong-count", f"{len(parts)} paths", expected=f"1 to {MAX_PATHS}, separated by commas")
    return [NetworkPath.from_any(part) for part in parts]


def _show(styles: Sequence[SchemeStyle], columns: Sequence[Column]) -> None:
    from ccgym.report.figures.portrait import number_texts

    measured = ("Mbit/s", "p95 delay, ms", "loss")
    rows = []
    for column in columns:
        for place, (style, record) in enumerate(zip(styles, column.runs, strict=True)):
            name = "" if place else column.path.name or "unnamed path"
            rows.append((name, style.label, *number_texts(record.flows[0])))
    print_table(("path", "scheme", *measured), rows, measured)


def _tree(arguments: argparse.Namespace) -> int:
    import numpy as np

    from ccgym.report.figures.decision_tree import DecisionTree, tree_figure

    policy = chosen_policy(arguments.policy)
    text = policy.native.tree()
    if text is None:
        raise ConfigError(
            "policy-unsuitable",
            f"{policy.title}, a policy of kind {policy.card.policy.kind}",
            where="POLICY",
            expected="a decision tree",
            hint="use `ccgym plot portrait`, which draws the behavior of any policy",
        )
    drawn, agent = json.loads(text), policy.describe_agent()
    tree = DecisionTree(
        nodes=drawn["nodes"],
        visits=np.array(drawn["visits"] or np.ones(len(drawn["nodes"]))),
        features=[row["name"] for row in agent["observation"]],
        actions=[row["name"] for row in agent["action"]],
    )
    draw(lambda: tree_figure(tree, title=policy.label, levels=arguments.levels), arguments)
    return 0


def _curves(arguments: argparse.Namespace) -> int:
    import numpy as np

    from ccgym.evaluation.run import contenders
    from ccgym.files import read_json
    from ccgym.report.figures.learning_curves import Curve, curve_figure
    from ccgym.training.logs import read_rows

    policy = chosen_policy(arguments.policy)
    folder = policy.file.parent
    points: dict[int, list[list[float]]] = {}
    for row in read_rows(folder / "curves.csv"):
        numbers = [float(row[key]) for key in ("step", "fraction_of_oracle", "wall_s")]
        points.setdefault(int(row["seed"]), []).append(numbers)
    curves = [Curve(seed, *np.array(rows).T) for seed, rows in points.items()]
    baselines = read_json(folder / "seeds.json")["held_out"]["fraction_of_oracle"]
    styles = {name: contenders([name])[0].style for name in baselines}
    title = f"{policy.label}: reward on held-out paths during training"
    draw(lambda: curve_figure(curves, baselines, styles, title=title, color=policy.color), arguments)
    return 0


def _searches(arguments: argparse.Namespace) -> int:
    from ccgym.config.grown import GapSearch
    from ccgym.report.figures.gap_search import gap_search_figure
    from ccgym.training.config import TrainConfig
    from ccgym.training.logs import read_rows
    from ccgym.training.run_directory import open_run

    runs = [open_run(run) for run in arguments.runs]
    configs = [TrainConfig.load(run.config) for run in runs]
    if not all(isinstance(config.environment.paths, GapSearch) for config in configs):
        raise ConfigError(
            "paths-unsuitable",
            "paths without a search",
            where="RUN",
            expected="trainings of a configuration with `kind: gap_search`",
        )
    searches = {config.training.seed: read_rows(run.curriculum) for config, run in zip(configs, runs, strict=True)}
    label, color = configs[0].style.label or configs[0].name, configs[0].style.color
    title = f"{label}: paths with gaps, found by the searches of {len(searches)} seeds"
    draw(lambda: gap_search_figure(searches, title=title, color=color), arguments)
    return 0


COMMAND: Final = Command(
    "plot",
    commands=(
        Command(
            "portrait",
            "draw the behavior of a scheme on a few paths in one figure",
            _portrait,
            description="""\
Draw the behavior of a scheme on a few paths: delivered rate and capacity, below them one-way delay,
and mean throughput, 95th-percentile delay and loss, with a second scheme in gray.
""",
            examples="""\
  ccgym plot portrait bbr --compare cubic -o bbr.png
  ccgym plot portrait aurora -o aurora.svg
  ccgym plot portrait runs/mine --compare none --trace 100.42mbps,ccperf-step -o mine.pdf
""",
            options={
                "SCHEME": "a scheme or policy, a run directory, or a .onnx file",
                "--compare SCHEME": "a second scheme, or none (default: bbr; for bbr itself cubic)",
                f"--trace A,B,C = {','.join(DEFAULT_PATHS)} as paths": "one to four paths: names, files or a mahimahi "
                "command line",
                **RUNTIME,
                **SEED,
                **FIGURE,
            },
            reads={"paths": _paths},
        ),
        Command(
            "tree",
            "draw the top of a decision tree",
            _tree,
            description="Draw the first questions of a decision tree, and how the decisions below spread over its "
            "actions.",
            examples="""\
  ccgym plot tree runs/mine -o tree.png
  ccgym plot tree mine.onnx --levels 3 -o tree.pdf
""",
            options={
                **POLICY,
                "--levels N in 1..5 = 4": "rows of questions, 1 to 5",
                **FIGURE,
            },
        ),
        Command(
            "curves",
            "draw learning curves of the seeds of `ccgym train seeds`",
            _curves,
            options={
                **POLICY,
                **FIGURE,
            },
            examples="""\
  ccgym plot curves aurora -o aurora.png
  ccgym plot curves agents/mine/policy.onnx -o mine.svg
""",
        ),
        Command(
            "searches",
            "draw the results of a curriculum's searches (paths of kind: gap_search)",
            _searches,
            options={
                "RUN... as runs": "run directories of `ccgym train`",
                **FIGURE,
            },
            reads={"runs": Path},
            examples="  ccgym plot searches runs/genet-1 runs/genet-2 -o searches.png\n",
        ),
    ),
)
