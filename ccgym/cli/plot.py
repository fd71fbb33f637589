"""``ccgym plot``: how a scheme behaves, a policy that is a decision tree, learning curves, and what searches found.

Exit status: 0, the figure is written; for the rest see :mod:`ccgym.cli.common`.
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
"""Calibrated paths that ask different questions: does random loss before a shallow queue slow it down; does it fill the
deep queue of a slow path; does it fill a fast one. They need no trace that is not there everywhere."""

NOTHING: Final = "none"
"""In place of the second scheme."""
DEFAULT_COMPARED: Final = ("bbr", "cubic")
"""The second scheme, and the one that is compared with it where it is the first."""
MAX_PATHS: Final = 4
"""More columns would not be legible on a page."""


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
            f"{policy.title}, of kind {policy.card.policy.kind}",
            where="POLICY",
            expected="a decision tree",
            hint="`ccgym plot portrait` draws how any policy behaves",
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
    title = f"{policy.label}: reward on held-out paths while it learns"
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
            "paths that are not searched",
            where="RUN",
            expected="trainings of a configuration with `kind: gap_search`",
        )
    searches = {config.training.seed: read_rows(run.curriculum) for config, run in zip(configs, runs, strict=True)}
    label, color = configs[0].style.label or configs[0].name, configs[0].style.color
    title = f"{label}: where the searches of {len(searches)} seeds found gaps"
    draw(lambda: gap_search_figure(searches, title=title, color=color), arguments)
    return 0


COMMAND: Final = Command(
    "plot",
    commands=(
        Command(
            "portrait",
            "how a scheme behaves on a few paths, in one figure",
            _portrait,
            description="""\
Draw how a scheme behaves on a few paths: delivered rate and capacity, one-way delay
below it, and mean throughput, 95th-percentile delay and loss, with a second scheme in gray.
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
            "the top of a policy that is a decision tree",
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
            "learning curves of the seeds of `ccgym train seeds`",
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
            "what the searches of a curriculum found (paths of kind: gap_search)",
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
