"""``pantheon_report.pdf``: the same report on paper, made with matplotlib alone.

Parts follow one another down the pages; a part that does not fit begins a new page. The order is Pantheon's: heading,
path, system and versions; summary figures; tables, with what looks wrong and which scheme is better; then each run on a
page of its own, with its statistics and the PNGs of its figures.
"""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from PIL import Image

from ccgym.evaluation.backends import RECORDED
from ccgym.evaluation.pantheon.write import run_text
from ccgym.evaluation.results import CellResult, ResultSet
from ccgym.report.differences_table import EXPLANATION as DIFFERENCES_EXPLAINED
from ccgym.report.differences_table import differences_table
from ccgym.report.evaluation_table import FRAMES, clock_text, evaluation_table, explanation, run_facts
from ccgym.report.figures import figures_of
from ccgym.report.pantheon_words import (
    figures_title,
    flow_table,
    generated,
    git_summary,
    published_table,
    repeated,
    statistics_title,
    system_info,
    tested,
)
from ccgym.report.run_figures import cell_links, run_files
from ccgym.report.style import BAD, GOOD, INK, MUTED, axes_at, few_colors, house_style, pixels, text_at
from ccgym.report.table import NOTHING, Table, Tone

PAGE_IN: Final = (8.27, 11.69)
"""A4, portrait, inches."""

MARGIN_IN: Final = 0.7
"""Room left, right, above and below, inches."""

WIDTH_IN: Final = PAGE_IN[0] - 2 * MARGIN_IN
"""Of the text, inches."""

CHARACTER_IN: Final = 0.065
"""Width of a character in the table, inches."""

ROW_IN: Final = 0.205
"""Height of a table's row of one line, inches."""

LINE_IN: Final = 0.14
"""Height of a further line of a row or of a table's head, inches."""

TONE_COLORS: Final[Mapping[Tone, str]] = {"good": GOOD, "bad": BAD, "unknown": MUTED, "muted": MUTED}
"""Tones of cells on paper."""

MONOSPACE: Final = "DejaVu Sans Mono"

MIN_SCALE: Final = 0.8
"""How much smaller figures may become, so that a run fits on its page."""

STATISTICS_COLUMNS: Final = 2
"""Flows whose statistics are side by side."""


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
    with house_style(), PdfPages(target, metadata=metadata) as pdf, _Sheet.of(pdf) as sheet:
        _head(sheet, results)
        figures = [few_colors(pixels(one.draw(results), dpi=200)).convert("RGB") for one in figures_of("evaluation")]
        sheet.turn()
        sheet.pictures(figures[:2])
        sheet.pictures(figures[2:])
        _tables(sheet, results)
        _problems(sheet, results)
        _differences(sheet, results)
        for cell in results.cells if runs is None else runs:
            sheet.turn()
            _run(sheet, cell, labels[cell.scheme], directory)


class _Sheet:
    """The current page, and how far down it is filled."""

    def __init__(self, pdf: PdfPages) -> None:
        self._pdf = pdf
        self._page: Figure | None = None
        self._top_in = 0.0
        self._number = 0

    @classmethod
    @contextmanager
    def of(cls, pdf: PdfPages) -> Iterator[_Sheet]:
        """A sheet whose last page is written at the end."""
        sheet = cls(pdf)
        yield sheet
        sheet.turn()

    def turn(self) -> None:
        """Write the page, unless it is empty, and begin a new one."""
        if self._page is not None:
            self._number += 1
            text_at(self._page, PAGE_IN[0] / 2, 0.4, str(self._number), ha="center", fontsize=8, color=MUTED)
            self._pdf.savefig(self._page)  # type: ignore[no-untyped-call]
        self._page, self._top_in = None, 0.0

    def skip(self, inches: float) -> None:
        """Leave space."""
        self._top_in += inches

    def fits(self, inches: float) -> bool:
        """Whether the page has this much free height."""
        return self._page is None or self._top_in + inches <= PAGE_IN[1] - 2 * MARGIN_IN

    def room(self, inches: float) -> Figure:
        """The page with this much free height: the current one, or a new one."""
        if not self.fits(inches):
            self.turn()
        if self._page is None:
            self._page = Figure(figsize=PAGE_IN)
        return self._page

    def put(self, text: str, left_in: float = 0.0, down_in: float = 0.0, **style: Any) -> None:
        """Write text, measured from the left margin and from the end of the filled part."""
        y = PAGE_IN[1] - MARGIN_IN - self._top_in - down_in
        text_at(self.room(0.0), MARGIN_IN + left_in, y, text, **{"color": INK, "va": "top", **style})

    def lines(self, lines: Sequence[str], size: float = 9.5, left_in: float = 0.0, **style: Any) -> None:
        """Write lines of text."""
        height = 1.4 * size / 72
        for line in lines:
            self.room(height)
            self.put(line, left_in, fontsize=size, **style)
            self.skip(height)

    def paragraph(self, text: str, size: float = 9.5, **style: Any) -> None:
        """Write wrapped text."""
        self.lines(textwrap.wrap(text, int(WIDTH_IN * 72 / (0.58 * size))), size, **style)

    def heading(self, text: str, size: float = 13, with_in: float = 0.6) -> None:
        """Write a heading, on the same page as the ``with_in`` inches that follow it."""
        self.skip(0.15 if self._top_in else 0.0)
        self.room(1.9 * size / 72 + with_in)
        self.put(text, fontsize=size, weight="bold")
        self.skip(1.9 * size / 72)

    def rule(self, color: str) -> None:
        """Draw a line across the page."""
        y = PAGE_IN[1] - MARGIN_IN - self._top_in
        page, ends = self.room(0.0), [MARGIN_IN, PAGE_IN[0] - MARGIN_IN]
        page.add_artist(Line2D(ends, [y, y], transform=page.dpi_scale_trans, color=color, linewidth=0.7))

    def pictures(self, images: Sequence[Image.Image]) -> None:
        """Put images across the page, one below the other, up to a fifth smaller where they then fit on this page.
        Images of at most 256 colors are stored with a palette."""
        whole = sum(WIDTH_IN * image.height / image.width + 0.1 for image in images)
        room = (PAGE_IN[1] - 2 * MARGIN_IN - self._top_in) / whole if images else 1.0
        width = WIDTH_IN * (room if MIN_SCALE <= room < 1 else 1.0)
        for image in images:
            height = width * image.height / image.width
            page = self.room(height)
            bottom = PAGE_IN[1] - MARGIN_IN - self._top_in - height
            axes = axes_at(page, MARGIN_IN + (WIDTH_IN - width) / 2, bottom, width, height)
            axes.set_axis_off()
            axes.imshow(np.asarray(image), interpolation="none")
            self.skip(height + 0.1)


def _head(sheet: _Sheet, results: ResultSet) -> None:
    sheet.put("Pantheon Report", fontsize=24, weight="bold")
    sheet.skip(0.48)
    sheet.put(str(results.parameters["path_name"]), fontsize=15, color=MUTED)
    sheet.skip(0.4)
    phrase, path = tested(results)
    sheet.paragraph(generated(), size=10)
    sheet.skip(0.08)
    sheet.paragraph(phrase, size=10)
    _block(sheet, path.splitlines())
    for text in repeated(results):
        sheet.paragraph(text, size=10)
        sheet.skip(0.08)
    for name, lines in (("System info:", system_info(results)), ("Git summary:", git_summary(results))):
        sheet.heading(name, size=10.5)
        _block(sheet, lines)
    provenance = results.provenance
    facts = [
        ("Command", str(provenance["command"]) or NOTHING),
        *_identity(results),
        ("Versions", ", ".join(f"{name} {number}" for name, number in provenance["versions"].items())),
        ("Took", f"{results.wall_s:.1f} s for {len(results.cells)} runs"),
    ]
    for name, value in facts:
        sheet.room(0.2)
        sheet.put(name, fontsize=9, color=MUTED)
        sheet.lines(textwrap.wrap(value, 82) or [NOTHING], size=9, left_in=1.0)


def _block(sheet: _Sheet, lines: Sequence[str]) -> None:
    """Lines as a terminal has them."""
    for line in lines:
        sheet.lines(textwrap.wrap(line, 98, subsequent_indent="    ") or [""], size=8, family=MONOSPACE)
    sheet.skip(0.1)


def _identity(results: ResultSet) -> list[tuple[str, str]]:
    """What the same command gives again."""
    if results.backend == RECORDED:
        return []
    again = ("Repeatable", "no: real packets in real time") if results.real else ("Trajectory", results.trajectory_hash)
    return [("Root seed", str(results.parameters["seed"])), again]


def _tables(sheet: _Sheet, results: ResultSet) -> None:
    table = evaluation_table(results)
    frames = [column for column in table.columns if column in FRAMES]
    _table(sheet, "Results", replace(table, columns=[column for column in table.columns if column not in frames]))
    if frames:
        rows = [row for row in table.rows if row.values[frames[0].name] is not None]
        _table(sheet, "Video", replace(table, columns=[table.columns[0], *frames], rows=rows))
    for note in [explanation(results), *table.notes]:
        sheet.paragraph(note, size=8, color=MUTED)
    _table(sheet, "Flow by flow", flow_table(results))
    published = published_table(results)
    if published is not None:
        _table(sheet, "Published runs", published)


def _differences(sheet: _Sheet, results: ResultSet) -> None:
    table = differences_table(results.differences, {one.key: one.label for one in results.styles})
    if not table.rows:
        return
    _table(sheet, "Which scheme is better?", table)
    sheet.paragraph(DIFFERENCES_EXPLAINED, size=8, color=MUTED)


def _table(sheet: _Sheet, title: str, table: Table) -> None:
    rows = [[table.text(row, column).split("\n") for column in table.columns] for row in table.rows]
    columns = list(zip([one.folded.split("\n") for one in table.columns], *rows, strict=True))
    widths = [1.4 + max(len(line) for lines in column for line in lines) for column in columns]
    edges = WIDTH_IN * np.cumsum([0.0, *widths]) / sum(widths)
    # Many columns get smaller letters, so that they stay apart.
    size = min(1.0, WIDTH_IN / (CHARACTER_IN * sum(widths)))
    further = LINE_IN * size
    head_in = 0.16 + LINE_IN * max(len(column[0]) for column in columns)
    sheet.heading(title, with_in=head_in + 3 * ROW_IN)

    def line(texts: Sequence[str], tones: Sequence[Tone], **style: Any) -> None:
        for place, (column, text, tone) in enumerate(zip(table.columns, texts, tones, strict=True)):
            left = edges[0] if column.align == "left" else edges[place + 1] - 0.03
            color = MUTED if column.group else TONE_COLORS.get(tone, INK)
            sheet.put(text, left, ha=column.align, color=color, **style)

    def head() -> None:
        names = [one.folded for one in table.columns]
        line(names, [""] * len(names), down_in=head_in - 0.08, fontsize=7 * size, weight="bold", va="bottom")
        sheet.skip(head_in)
        sheet.rule(INK)

    head()
    for row, texts in zip(table.rows, rows, strict=True):
        step = ROW_IN + further * (max(map(len, texts)) - 1)
        if not sheet.fits(step):
            sheet.turn()
            head()
        tones = [table.cell(row, column).tone for column in table.columns]
        line(["\n".join(lines) for lines in texts], tones, down_in=step / 2, fontsize=7.8 * size, va="center")
        sheet.skip(step)
        sheet.rule("#e2e2e2")
    sheet.skip(0.1)


def _problems(sheet: _Sheet, results: ResultSet) -> None:
    problems = [
        *(f"{failure.scheme}, run {failure.run} failed: {failure.error}" for failure in results.failures),
        *(
            f"{flag['subject']}: {flag['message']}." + (f" Likely cause: {flag['cause']}." if flag["cause"] else "")
            for flag in results.flags
        ),
    ]
    if not problems:
        return
    sheet.heading("Look at this first")
    for problem in problems:
        sheet.lines(textwrap.wrap(problem, 94, initial_indent="• ", subsequent_indent="   "), size=9)
        sheet.skip(0.05)


def _run(sheet: _Sheet, cell: CellResult, label: str, directory: Path) -> None:
    sheet.heading(statistics_title(cell, label), size=14)
    facts = run_facts(cell) + (f" · emulator-limited: {cell.limited}" if cell.limited else "")
    sheet.paragraph(facts, size=8.5, color=MUTED)
    sheet.paragraph(clock_text(cell), size=8.5, color=MUTED)
    if cell.invalid:
        sheet.paragraph(f"This run does not count: {cell.invalid}.", size=8.5, color=MUTED)
    sheet.skip(0.1)
    first, *flows = _parts(run_text(cell, time.time()))
    size = 8 if len(flows) == 1 else 7.5  # two columns of longer lines
    sheet.lines(first, size=size, family=MONOSPACE)
    for start in range(0, len(flows), STATISTICS_COLUMNS):
        row = flows[start : start + STATISTICS_COLUMNS]
        height = 1.4 * size / 72 * max(len(flow) for flow in row)
        sheet.room(height + 0.06)
        for place, flow in enumerate(row):
            sheet.put("\n".join(flow), place * WIDTH_IN / STATISTICS_COLUMNS, fontsize=size, family=MONOSPACE,
                      linespacing=1.4)  # fmt: skip
        sheet.skip(height + 0.06)
    for link in cell_links(cell):
        files = [one for one in run_files(directory, cell.scheme, cell.run, link) if not one.paper]
        sheet.heading(figures_title(cell, label, link), size=11, with_in=2.0)
        images = []
        for one in files:
            if one.file.exists():
                with Image.open(one.file) as image:
                    images.append(image.convert("RGB"))
            else:
                sheet.paragraph("Figure is missing", color=MUTED)
        sheet.pictures(images)


def _parts(statistics: str) -> list[list[str]]:
    """The lines of a statistics file: times and all flows together, then each flow's."""
    parts: list[list[str]] = []
    for line in statistics.rstrip().splitlines():
        if line.startswith("-- Flow") or not parts:
            parts.append([])
        parts[-1].append(line)
    return parts
