"""Draw the slow figures of the pages into .cache/figures, if they are missing or older than their data.

Run by ``make site``; with names as arguments, these figures are drawn again.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
from pages.markdown import ROOT
from pages.schemes import FIGURES, picture

from ccgym import _core
from ccgym.cli.main import main as ccgym
from ccgym.evaluation.run import contender
from ccgym.report.style import blank_figure, house_style, save_compact
from tests.reproduction import genuine_programs as genuine
from tests.reproduction.report import PAGES

PROGRAM_COLORS = ("#222222", "#2a8f4f", "#1f5fbf")
"""Styles for a program, for ccgym's scheme emulated, and for ccgym's scheme simulated."""


def draw_programs(file: Path) -> None:
    """Draw the sending rate of each program of the founding reports and of ccgym's scheme, a panel per path."""
    with house_style():
        drawn = blank_figure(17, 1.25 * len(genuine.PROGRAMS) + 1)
        drawn.set_layout_engine("constrained")
        panels = drawn.subplots(len(genuine.PROGRAMS), len(genuine.PATHS), sharex=True)
        for row, program in zip(panels, genuine.PROGRAMS, strict=True):
            label = contender(genuine.SCHEMES[program]).style.label.replace(" (", "\n(")
            row[0].set_ylabel(f"{label}\n(Mbit/s)", size="small")
            for axes, path in zip(row, genuine.PATHS, strict=True):
                for (label, runs), color in zip(genuine.compared(program, path).items(), PROGRAM_COLORS, strict=True):
                    rate = genuine.course(runs) * 8e-3 / genuine.COURSE_S
                    times = (np.arange(rate.size) + 0.5) * genuine.COURSE_S
                    axes.plot(times, rate, color=color, linewidth=1, label=label)
                axes.set_ylim(bottom=0)
                axes.tick_params(labelsize="x-small")
        for axes, path in zip(panels[0], genuine.PATHS, strict=True):
            axes.set_title(path)
        for axes in panels[-1]:
            axes.set_xlabel("Time (s)")
        drawn.legend(*panels[0][0].get_legend_handles_labels(), loc="outside upper right", ncols=3)
        save_compact(drawn, file)


def draw_windows(file: Path) -> None:
    """Draw the windows in schemes/tests/curves, a panel per scheme."""
    files = sorted((ROOT / "schemes/tests/curves").glob("*.csv"))
    with house_style():
        drawn = blank_figure(17, 1.6 * -(-len(files) // 5))
        drawn.set_layout_engine("constrained")
        panels = drawn.subplots(-(-len(files) // 5), 5, sharex=True, squeeze=False)
        for axes, kept in zip(panels.flat, files, strict=False):
            rows = list(csv.DictReader(kept.read_text(encoding="utf-8").splitlines()))
            for path, color in zip(list(rows[0])[1:], PROGRAM_COLORS, strict=True):
                axes.plot(
                    [int(row["ms"]) / 1e3 for row in rows], [int(row[path]) for row in rows], color=color, label=path
                )
            axes.set_title(contender(kept.stem).style.label, size="small")
            axes.set_ylim(bottom=0)
            axes.tick_params(labelsize="x-small")
        for axes in panels.flat[len(files) :]:
            axes.set_axis_off()
        drawn.supxlabel("Time (s)", size="small")
        drawn.supylabel("Window (packets)", size="small")
        drawn.legend(*panels[0][0].get_legend_handles_labels(), loc="outside upper right", ncols=3)
        save_compact(drawn, file)


def draw(name: str) -> None:
    """Draw one figure."""
    kind, subject = FIGURES[name]
    file = picture(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    if kind == "programs":
        draw_programs(file)
    elif kind == "windows":
        draw_windows(file)
    elif kind == "table":
        file.write_text(PAGES["validation"][name](), encoding="utf-8")
    elif ccgym(["plot", kind, subject, "-o", str(file)]) != 0:
        raise SystemExit(f"{name}: not drawn")


def outdated(name: str) -> bool:
    """Return whether a figure is missing, or older than the native module, its agent or its recording."""
    file = picture(name)
    kind, subject = FIGURES[name]
    recorded = {"programs": genuine.RECORDED.rglob("*.gz"), "windows": (ROOT / "schemes/tests/curves").glob("*")}
    shown = recorded[kind] if kind in recorded else (ROOT / "agents" / subject).glob("*")
    sources = [Path(_core.__file__), *shown]
    return not file.exists() or file.stat().st_mtime < max(one.stat().st_mtime for one in sources)


if __name__ == "__main__":
    for figure in sys.argv[1:] or filter(outdated, FIGURES):
        draw(figure)
