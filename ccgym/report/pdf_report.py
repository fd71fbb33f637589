"""``pantheon_report.pdf``: the same report on paper, made with matplotlib alone.

Pages: title with path and table of facts, mean figure, all runs, the table, then a page per run with its statistics
and its two figures, the PNGs that were drawn before.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure
from PIL import Image

from ccgym.evaluation.backends import PLACES, is_real
from ccgym.evaluation.pantheon import statistics_text
from ccgym.evaluation.results import CellResult, ResultSet
from ccgym.report.run_figures import figure_paths
from ccgym.report.style import INK, MUTED, few_colours, house_style, pixels
from ccgym.report.summary_figure import mean_figure, summary_figure
from ccgym.report.table import COLUMNS, NOTHING, PUBLISHED_COLUMNS, TITLES, Row, folded, footnotes, rows

PDF_FILE: Final = "pantheon_report.pdf"

PAGE: Final = (8.27, 11.69)
"""A4, portrait, inches."""

MARGIN: Final = 0.09
"""Left and right margin, as a fraction of the page's width."""

MONOSPACE: Final = "DejaVu Sans Mono"


def write_pdf(results: ResultSet, directory: Path, target: Path, runs: Iterable[CellResult] | None = None) -> None:
    """Write the report.

    Args:
        results: The experiment.
        directory: Where its figures are.
        target: The file to write.
        runs: The runs, in order, as their figures become ready; by default all of them, ready now.
    """
    metadata = {"Title": f"Pantheon report: {results.parameters['path_name']}", "CreationDate": None}
    labels = {style.key: style.label for style in results.styles}
    with house_style(), PdfPages(target, metadata=metadata) as pdf:
        pdf.savefig(_title_page(results))
        pdf.savefig(_figure_page(mean_figure(results), summary_figure(results)))
        for page in _table_pages(results):
            pdf.savefig(page)
        for cell in results.cells if runs is None else runs:
            pdf.savefig(_run_page(cell, labels[cell.scheme], directory))


def _page() -> Figure:
    return Figure(figsize=PAGE)


def _title_page(results: ResultSet) -> Figure:
    page = _page()
    parameters, provenance = results.parameters, results.provenance
    flows = parameters["flows"]
    page.text(MARGIN, 0.93, "Pantheon report", fontsize=24, weight="bold", color=INK, va="top")
    page.text(MARGIN, 0.89, str(parameters["path_name"]), fontsize=15, color=MUTED, va="top")
    words = (
        f"{len(results.styles)} schemes, {parameters['runs']} runs each of {parameters['runtime_s']:g} s with "
        f"{flows} flow{'s' if flows != 1 else ''}. {_sentence(PLACES[results.backend])}, {provenance['started']}."
    )
    top = _paragraph(page, words, 0.855)
    top = _block(page, str(provenance["path"]), top - 0.015)
    facts = [
        ("Command", str(provenance["command"]) or NOTHING),
        ("Root seed", str(parameters["seed"])),
        ("Repeatable", "no: real packets in real time") if results.real else ("Trajectory", results.trajectory_hash),
        ("Versions", ", ".join(f"{name} {number}" for name, number in provenance["versions"].items())),
        ("System", str(provenance["system"])),
        ("Took", f"{results.wall_s:.1f} s for {len(results.cells)} runs"),
    ]
    for name, value in facts:
        page.text(MARGIN, top, name, fontsize=9.5, color=MUTED, va="top")
        lines = textwrap.wrap(value, 78) or [NOTHING]
        page.text(MARGIN + 0.13, top, "\n".join(lines), fontsize=9.5, color=INK, va="top", linespacing=1.4)
        top -= 0.0175 * len(lines) + 0.006
    problems = [
        *(f"{failure.scheme}, run {failure.run} failed: {failure.error}" for failure in results.failures),
        *(f"{flag['subject']}: {flag['message']}. Likely cause: {flag['cause']}." for flag in results.flags),
    ]
    if problems:
        top -= 0.02
        page.text(MARGIN, top, "Look at this first", fontsize=13, weight="bold", color=INK, va="top")
        top -= 0.03
        for place, problem in enumerate(problems):
            lines = textwrap.wrap(problem, 92, initial_indent="• ", subsequent_indent="   ")
            if top - 0.0165 * len(lines) < 0.06:
                page.text(
                    MARGIN, top, f"… and {len(problems) - place} more in the HTML report", fontsize=9, color=MUTED
                )
                break
            page.text(MARGIN, top, "\n".join(lines), fontsize=9, color=INK, va="top", linespacing=1.4)
            top -= 0.0165 * len(lines) + 0.007
    return page


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _paragraph(page: Figure, words: str, top: float) -> float:
    lines = textwrap.wrap(words, 88)
    page.text(MARGIN, top, "\n".join(lines), fontsize=10, color=INK, va="top", linespacing=1.45)
    return top - 0.0185 * len(lines)


def _block(page: Figure, text: str, top: float) -> float:
    lines = [part for line in text.splitlines() for part in textwrap.wrap(line, 96, subsequent_indent="    ") or [""]]
    page.text(
        MARGIN, top, "\n".join(lines), fontsize=8, family=MONOSPACE, color=INK, va="top", linespacing=1.5,
        bbox={"facecolor": "#f7f5f2", "edgecolor": "#e2e2e2", "boxstyle": "round,pad=0.6"},
    )  # fmt: skip
    return top - 0.0145 * len(lines) - 0.035


def _figure_page(*figures: Figure) -> Figure:
    """Figures as images, one below the other."""
    page = _page()
    height = 0.88 / len(figures)
    for place, figure in enumerate(figures):
        drawn = few_colours(pixels(figure, dpi=200)).convert("RGB")
        _picture(page, drawn, 0.94 - height * (place + 1), height)
    return page


def _table_pages(results: ResultSet) -> list[Figure]:
    """The table, as many rows on a page as fit; landscape."""
    all_rows = rows(results)
    pages = []
    per_page = 24
    for start in range(0, len(all_rows), per_page):
        page = Figure(figsize=PAGE[::-1])
        page.text(0.06, 0.93, "Results", fontsize=16, weight="bold", color=INK, va="top")
        _draw_table(page, all_rows[start : start + per_page], bool(results.published))
        notes = "Mean ± one standard deviation over the runs that count."
        if results.published_source:
            notes += f" Published: {results.published_source}."
        lines = [part for note in [notes, *footnotes(results)] for part in textwrap.wrap(note, 160)]
        page.text(0.06, 0.05, "\n".join(lines), fontsize=8.5, color=MUTED, linespacing=1.4)
        pages.append(page)
    return pages


def _draw_table(page: Figure, part: Sequence[Row], published: bool) -> None:
    names = ["scheme", "runs", *(TITLES[name] for name in COLUMNS)]
    widths = [2.6, 0.8, 1.8, 1.8, 1.6, 1.6]
    if published:
        names += [f"published {TITLES[name]}" for name in PUBLISHED_COLUMNS]
        widths += [1.5, 1.5, 1.3]
    edges = 0.06 + 0.88 * np.cumsum([0.0, *widths]) / sum(widths)
    step = min(0.031, 0.74 / max(1, len(part)))
    top = 0.85
    for place, name in enumerate(names):
        left = place == 0
        page.text(
            edges[0] if left else edges[place + 1] - 0.008, top, folded(name), fontsize=9, weight="bold",
            color=MUTED if name.startswith("published") else INK, ha="left" if left else "right", va="bottom",
        )  # fmt: skip
    page.add_artist(_rule(page, top - 0.008, INK))
    for line, row in enumerate(part):
        y = top - 0.014 - step * (line + 0.5)
        runs = "unavailable" if row.unavailable else row.runs
        texts = [row.marked, runs, *(row.cells[name] for name in COLUMNS)]
        if published:
            texts += [row.published[name] or NOTHING for name in PUBLISHED_COLUMNS]
        for place, text in enumerate(texts):
            left = place == 0
            page.text(
                edges[0] if left else edges[place + 1] - 0.008, y, text, fontsize=9,
                color=MUTED if place >= 2 + len(COLUMNS) else INK, ha="left" if left else "right", va="center",
            )  # fmt: skip
        page.add_artist(_rule(page, y - step / 2, "#e2e2e2"))


def _rule(page: Figure, y: float, colour: str) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([0.06, 0.94], [y, y], transform=page.transFigure, color=colour, linewidth=0.7)


def _run_page(cell: CellResult, label: str, directory: Path) -> Figure:
    assert cell.record.metrics is not None
    page = _page()
    page.text(MARGIN, 0.955, f"{label}, run {cell.run}", fontsize=15, weight="bold", color=INK, va="top")
    facts = f"seed {cell.record.seed}"
    if not is_real(cell.record.backend):
        facts += f" · trajectory {cell.record.trajectory_hash}"
    if cell.limited:
        facts += f" · emulator-limited: {cell.limited}"
    if cell.invalid:
        facts += f"\nThis run does not count: {cell.invalid}."
    page.text(MARGIN, 0.928, facts, fontsize=9, color=MUTED, va="top", linespacing=1.5)
    text = statistics_text(cell.record.metrics).rstrip().splitlines()
    shown = text if len(text) <= 16 else [*text[:15], f"… and {(len(text) - 15) // 4} more flows"]
    page.text(MARGIN, 0.885, "\n".join(shown), fontsize=9, family=MONOSPACE, color=INK, va="top", linespacing=1.45)
    height = 0.315
    for place, file in enumerate(figure_paths(directory, cell.scheme, cell.run)):
        bottom = 0.355 - place * (height + 0.005)
        if file.exists():
            with Image.open(file) as image:
                _picture(page, image.convert("RGB"), bottom, height)
        else:
            page.text(0.5, bottom + height / 2, "Figure is missing", fontsize=10, color=MUTED, ha="center")
    return page


def _picture(page: Figure, image: Image.Image, bottom: float, height: float) -> None:
    """Place an image across the page. Where it has at most 256 colours, it is stored as a palette."""
    axes = page.add_axes((0.04, bottom, 0.92, height))
    axes.set_axis_off()
    axes.imshow(np.asarray(image), interpolation="none")
