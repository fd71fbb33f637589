"""``ccgym record``: train several seeds, confirm each on fresh draws, export the median one.

Exit status: 0, the record is written; 130, stopped by a signal, and the same command continues; for the rest see
:mod:`ccgym.cli.common`.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ccgym.cli.common import STATUS_INTERRUPTED, HelpFormatter, Parser, add_device, add_overrides, console, run, say
from ccgym.errors import ConfigError, PlatformError, shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ccgym.contrib.recording import Recording

_DESCRIPTION: Final = """\
Record a learned scheme. Every seed is trained into RUNS/NAME-SEED (a finished run is taken as it
is, one begun is resumed); the best model of each is measured on fresh draws of the paths, next to
the oracle and the baselines; and the seed of median reward there is exported, unless --export names
another.
"""

_EXAMPLES: Final = """\
examples:
  ccgym record aurora --seeds 1,2,3,4,5
      five seeds into runs/aurora-1 …; policy, card, curves and seeds into agents/aurora
  ccgym record aurora --seeds 1,2,3 --out mine --figure mine/curve.png
      the record elsewhere, with a figure of the learning curves
  ccgym record aurora --seeds 1,2 --set training.steps=100000 --runs runs/short --out mine
      with settings changed
"""


def parser() -> argparse.ArgumentParser:
    """The command line of ``ccgym record``."""
    made = Parser(prog="ccgym record", description=_DESCRIPTION, epilog=_EXAMPLES, formatter_class=HelpFormatter)
    made.add_argument("config", metavar="CONFIG", help="a YAML file, or a name, as with `ccgym train`")
    made.add_argument("--seeds", required=True, metavar="1,2,3", help="the seeds to train")
    made.add_argument(
        "--runs", type=Path, default=Path("runs"), metavar="DIR", help="where the run directories are (default: runs)"
    )
    made.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="the folder of the agent, where the record goes (default: agents/NAME)",
    )
    made.add_argument("--figure", type=Path, metavar="FILE", help="a figure of the learning curves: .png, .svg, .pdf")
    made.add_argument(
        "--search-figure",
        type=Path,
        metavar="FILE",
        help="a figure of what the searches of a curriculum found (paths of kind: gap_search)",
    )
    add_overrides(made)
    made.add_argument(
        "--export",
        type=int,
        metavar="SEED",
        help="the seed to export (default: that of median reward); the record says that it was asked for",
    )
    add_device(made)
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``ccgym record`` and return its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    return run(lambda: _record(parser().parse_args(words)))


def _record(arguments: argparse.Namespace) -> int:
    seeds = _seeds(arguments.seeds)
    from ccgym.config.grown import GapSearch
    from ccgym.contrib.recording import record
    from ccgym.training.config import TrainConfig
    from ccgym.training.progress import ProgressDisplay

    config = TrainConfig.load(arguments.config, arguments.overrides)
    if arguments.search_figure is not None and not isinstance(config.environment.paths, GapSearch):
        raise ConfigError(
            "paths-unsuitable",
            "paths that are not searched",
            where="--search-figure",
            expected="a configuration with `kind: gap_search`",
        )
    made = record(
        config,
        seeds,
        arguments.runs,
        arguments.out or Path("agents") / config.name,
        say=say,
        display=lambda one: ProgressDisplay(console(), one.training.steps),
        command=_command(arguments, seeds),
        device=arguments.device,
        export=arguments.export,
    )
    if made is None:
        console().print("stopped; the same command continues", style="yellow")
        return STATUS_INTERRUPTED
    say(f"policy    {made.exported.onnx}")
    say(f"seeds     {made.seeds_file}")
    say(f"curves    {made.curves_file}")
    for file, draw in ((arguments.figure, _draw), (arguments.search_figure, _draw_searches)):
        if file is not None:
            draw(made, config.style.label or made.name, config.style.color, file)
            say(f"figure    {file}")
    return 0


def _seeds(text: str) -> list[int]:
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise ConfigError(
            "text-malformed", shown(text), where="--seeds", expected="whole numbers, as in 1,2,3"
        ) from None


def _command(arguments: argparse.Namespace, seeds: Sequence[int]) -> list[str]:
    """What repeats the record: without the places, which do not matter."""
    words = ["ccgym", "record", Path(arguments.config).name.removesuffix(".yaml")]
    words += ["--seeds", ",".join(map(str, sorted(seeds)))]
    if arguments.export is not None:
        words += ["--export", str(arguments.export)]
    for override in arguments.overrides:
        words += ["--set", override]
    return words


def _draw(made: Recording, label: str, color: str, file: Path) -> None:
    """Write the figure of the learning curves."""
    import numpy as np

    from ccgym.evaluation.run import contenders
    from ccgym.report.figures.learning_curves import Curve, curve_figure

    curves = [
        Curve(
            one.seed,
            np.array([point.step for point in one.curve], dtype=np.float64),
            np.array([point.fraction_of_oracle for point in one.curve]),
            np.array([point.wall_s for point in one.curve]),
        )
        for one in made.seeds
    ]
    baselines = contenders(made.held_out, "evaluation.baselines") if made.held_out else ()
    drawn = {name: one.style for name, one in zip(made.held_out, baselines, strict=True)}
    title = f"{label}: reward on held-out paths while it learns"
    _write(lambda: curve_figure(curves, made.held_out, drawn, title=title, color=color), made.name, file)


def _draw_searches(made: Recording, label: str, color: str, file: Path) -> None:
    """Write the figure of what searches found."""
    from ccgym.report.figures.gap_search import gap_search_figure
    from ccgym.training.logs import read_rows
    from ccgym.training.run_directory import RunDirectory

    searches = {one.seed: read_rows(RunDirectory(one.run_dir).curriculum) for one in made.seeds}
    title = f"{label}: where the searches of {len(searches)} seeds found gaps"
    _write(lambda: gap_search_figure(searches, title=title, color=color), made.name, file)


def _write(draw: Callable[[], Figure], name: str, file: Path) -> None:
    from ccgym.report.style import house_style, save, save_compact

    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with house_style():
            (save_compact if file.suffix == ".png" else save)(draw(), file)
    except (OSError, ValueError) as error:
        raise PlatformError(
            "file-unwritable",
            f"the figure cannot be written: {error}",
            where=str(file),
            expected="a .png, .svg or .pdf file in a place that can be written",
            hint=f"ccgym record {shlex.quote(name)} again: finished runs are not trained again",
        ) from None
