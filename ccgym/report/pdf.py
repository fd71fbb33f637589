"""``pantheon_report.pdf``: a page (:mod:`ccgym.report.page`) on paper, by fpdf2.

Blocks follow one another. Blocks that are hidden in the HTML are open here, and begin a new sheet if they have figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Final

import matplotlib as mpl
from fpdf import FPDF
from fpdf.fonts import TTFFont
from PIL import Image

from ccgym.files import atomic_write
from ccgym.report.page import Block, Code, Details, Facts, Flag, Heading, Page, Picture, Text
from ccgym.report.style import BAD, GOOD, INK, MUTED
from ccgym.report.table import Table, Tone

MARGIN_IN: Final = 0.7
"""Margin on all sides, inches."""
HEAD_IN: Final = 2.0
"""Max filled height of a sheet, inches, at which blocks with figures do not begin a new sheet."""
MIN_SCALE: Final = 0.8
"""Min scale of figures that are made smaller to stay on the sheet of their text."""
TONE_COLORS: Final[dict[Tone, str]] = {"good": GOOD, "bad": BAD, "unknown": MUTED, "muted": MUTED}
"""Colors of cells on paper, by tone."""
MIN_SIZE: Final = 2.0
"""Min font size, points; a table that needs smaller letters, for example with a thousand flows, is left out."""
PADDING_IN: Final = 0.02
"""Room around the text of a cell, inches."""
CHARACTER: Final = 0.62
"""Width of a character as a fraction of the font size."""


class _Paper(FPDF):
    """Sheets of A4 with the fonts of the figures."""

    def __init__(self, title: str) -> None:
        super().__init__(unit="in", format="A4")
        fonts = Path(mpl.get_data_path(), "fonts", "ttf")
        self.add_font("sans", "", fonts / "DejaVuSans.ttf")
        self.add_font("sans", "B", fonts / "DejaVuSans-Bold.ttf")
        self.add_font("mono", "", fonts / "DejaVuSansMono.ttf")
        self.set_title(title)
        self.set_margin(MARGIN_IN)
        self.set_auto_page_break(auto=True, margin=MARGIN_IN)
        self.add_page()

    def footer(self) -> None:
        """Write the number of the sheet."""
        self.set_y(-0.5)
        self.set_font("sans", size=8)
        self.set_text_color(MUTED)
        self.cell(w=self.epw, text=str(self.page_no()), align="C")

    @property
    def left_in(self) -> float:
        """Free height of the sheet, inches."""
        return float(self.h - self.b_margin - self.y)

    def lines(self, text: str, size: float = 9, *, family: str = "sans", bold: bool = False, color: str = INK) -> None:
        """Write text, with a little space below it."""
        self.set_font(family, "B" if bold else "", size)
        self.set_text_color(color)
        self.multi_cell(self.epw, 1.4 * size / 72, text, align="L", new_x="LMARGIN", new_y="NEXT")
        self.ln(0.06)

    def heading(self, text: str, level: int) -> None:
        """Write a heading on the same sheet as the block after it."""
        if self.left_in < (4.0 if level <= 2 else 1.5):
            self.add_page()
        self.ln(0.1)
        self.lines(text, {1: 22.0, 2: 14.0}.get(level, 11.0), bold=True)


def write_pdf(page: Page, directory: Path, target: Path) -> None:
    """Write a page on paper.

    Args:
        page: The page.
        directory: Directory of its figures: a PNG of each.
        target: The file; it is written atomically.
    """
    paper = _Paper(page.title)
    paper.heading(page.title, 1)
    paper.lines(page.lead, color=MUTED)
    _write(paper, page.blocks, directory)
    paper.heading("How this was made", 2)
    versions = ", ".join(f"{name} {version}" for name, version in page.provenance["versions"].items())
    command = str(page.provenance["command"] or "")
    _write(paper, [Facts([("Command", command), *page.made, ("Versions", versions)])], directory)
    atomic_write(target, bytes(paper.output()))
    for font in paper.fonts.values():
        if isinstance(font, TTFFont):
            font.ttfont.close()  # fpdf2 leaves their files open


def _write(paper: _Paper, blocks: Iterable[Block], directory: Path) -> None:
    for pictures, some in groupby(blocks, lambda block: isinstance(block, Picture)):
        if pictures:
            _pictures(
                paper, [directory / Path(one.file).with_suffix(".png") for one in some if isinstance(one, Picture)]
            )
            continue
        for block in some:
            match block:
                case Heading():
                    paper.heading(block.text, block.level)
                case Text() if not block.link:
                    paper.lines(block.text, color=MUTED if block.tone == "muted" else INK)
                case Code():
                    paper.lines(block.text, 7.5, family="mono")
                case Facts():
                    for name, text in block.rows:
                        if text:
                            paper.lines(f"{name}: {text}", 8.5)
                case Flag():
                    cause = f" Likely cause: {block.cause}." if block.cause else ""
                    paper.lines(f"• {block.subject}: {block.text}{cause}")
                case Table() if block.rows:
                    _table(paper, block)
                    for note in block.notes:
                        paper.lines(note, 8, color=MUTED)
                case Details() if block.paper:
                    if any(isinstance(one, Picture) for one in block.blocks) and paper.y > HEAD_IN:
                        paper.add_page()
                    paper.heading(block.title, 3)
                    if block.note:
                        paper.lines(block.note, 8, color=MUTED)
                    _write(paper, block.blocks, directory)


def _pictures(paper: _Paper, files: Sequence[Path]) -> None:
    """Write figures one below the other, up to a fifth smaller if they then fit on this sheet."""
    there = [file for file in files if file.exists()]
    for _ in range(len(files) - len(there)):
        paper.lines("Figure is missing", color=MUTED)
    ratios = []
    for file in there:
        with Image.open(file) as image:
            ratios.append(image.height / image.width)
    whole = sum(paper.epw * ratio + 0.1 for ratio in ratios)
    room = paper.left_in / whole if there else 1.0
    width = paper.epw * (room if MIN_SCALE <= room < 1 else 1.0)
    for file in there:
        paper.image(str(file), x=paper.l_margin + (paper.epw - width) / 2, w=width)
        paper.ln(0.1)


def _table(paper: _Paper, table: Table) -> None:
    rows = [[table.text(row, column) for column in table.columns] for row in table.rows]
    texts = zip([one.folded for one in table.columns], *rows, strict=True)
    widths = [1.4 + max(len(line) for text in column for line in text.split("\n")) for column in texts]
    # Many columns get smaller letters, so that they do not overlap.
    size = min(8.0, 72 * paper.epw / (CHARACTER * sum(widths)))
    if size < MIN_SIZE:
        paper.lines(f"A table of {len(widths)} columns is on the page only.", 8, color=MUTED)
        return
    height, scale = 1.4 * size / 72, paper.epw / sum(widths)
    align = ["L" if one.align == "left" else "R" for one in table.columns]

    def write(texts: Sequence[str], bold: str, colors: Iterable[str]) -> None:
        """Write the cells of a row with a rule above. The heading, at the top of each sheet, is bold without a rule."""
        lines = list(zip_longest(*(text.split("\n") for text in texts), fillvalue=""))
        if paper.left_in < len(lines) * height + PADDING_IN:
            paper.add_page()
            if not bold:
                write(head, "B", [INK] * len(head))
        if not bold:
            paper.line(paper.l_margin, paper.y + PADDING_IN, paper.l_margin + paper.epw, paper.y + PADDING_IN)
            paper.ln(2 * PADDING_IN)
        paper.set_font("sans", bold, size)
        for line in lines:
            for width, text, side, color in zip(widths, line, align, colors, strict=True):
                paper.set_text_color(color)
                paper.cell(scale * width, height, text, align=side)
            paper.ln(height)

    # The table of fpdf2 computes the line breaks of each cell twice; here, they are known.
    paper.set_draw_color("#d8d8d8")
    margin, paper.c_margin = paper.c_margin, PADDING_IN
    head = [one.folded for one in table.columns]
    write(head, "B", [INK] * len(head))
    for row, cells in zip(table.rows, rows, strict=True):
        tones = [MUTED if c.group else TONE_COLORS.get(table.cell(row, c).tone or row.tone, INK) for c in table.columns]
        write(cells, "", tones)
    paper.c_margin = margin
    paper.ln(0.1)
