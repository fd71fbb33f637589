"""One style for all figures: fonts, colors, sizes for screen and paper, and functions that save files.

Figures are made with matplotlib's object interface and the Agg canvas, never with ``pyplot``: no global state, no
display, safe in worker processes.
"""

from __future__ import annotations

import colorsys
import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import Colormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter
from PIL import Image

from ccgym.files import atomic_write
from ccgym.report.figures import FORMATS
from ccgym.schemes.style import FLOW_COLORS

CAPACITY_COLOR: Final = "linen"
"""Fill below the link's capacity, as in Pantheon."""

CAPACITY_EDGE: Final = "#d8c9b6"
"""Outline of the capacity, so that it is visible on a pale screen."""

INK: Final = "#222222"

MUTED: Final = "#6b6b6b"

GOOD: Final = "#2a7a45"

BAD: Final = "#b3261e"

DPI: Final = 100

PRINT_DPI: Final = 400
"""Dots per inch of rasterized points in figures on paper."""

COLUMN_IN: Final = 3.4

COLUMN_AXES_IN: Final = 2.1
"""Height of axes on paper, inches."""

MAX_LUMINANCE: Final = 0.3
"""Max relative luminance of marks and lines on white: a contrast of 3, as WCAG requires for graphics."""

MIN_LUMINANCE: Final = 0.2
"""Min relative luminance of marks and lines on a dark page: a contrast of slightly more than 3."""

PASS_COLOR: Final = "#e4f1e6"
"""Fill of passed tests."""

FAIL_COLOR: Final = "#f7e0dc"
"""Fill of failed tests."""

PAPER_SUFFIX: Final = "_paper.pdf"
"""End of the file names of figures that are as wide as a column of a paper."""


@dataclass(frozen=True)
class Medium:
    """The medium of figures: a screen or paper."""

    text_pt: float
    """Font size, points; names (and in a column, ticks and legends) are one point smaller."""
    mark_pt: float
    """Diameter of a mark, points."""
    column: bool = False
    """Whether figures are a column of a paper: :data:`COLUMN_IN` wide, without a title (the paper has a caption), with
    axes of height :data:`COLUMN_AXES_IN`."""

    @property
    def line(self) -> float:
        """Width of lines, relative to lines on a screen."""
        return 0.6 if self.column else 1.0


SCREEN: Final = Medium(text_pt=11, mark_pt=8.5)
"""Medium of reports and pages."""

PAPER: Final = Medium(text_pt=8, mark_pt=5, column=True)
"""A column of a paper, for inclusion without scaling."""


PLAIN: Final = FuncFormatter(lambda value, _: f"{value:g}")
"""Numbers of logarithmic axes, without exponents."""

_CANVASES: Final[Mapping[str, Any]] = {"svg": FigureCanvasSVG, "pdf": FigureCanvasPdf, "png": FigureCanvasAgg}

_medium: ContextVar[Medium] = ContextVar("medium", default=SCREEN)

_RC: Final[dict[Any, Any]] = {
    "font.family": "DejaVu Sans",
    "axes.titley": 1.0,  # a fixed place: the search for a free place takes a tenth of the drawing time
    "axes.edgecolor": "#888888",
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.8,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "svg.fonttype": "path",
    "svg.hashsalt": "ccgym",
    "pdf.fonttype": 42,
    "path.simplify": True,
    "text.parse_math": False,  # labels are plain text, also with a $ in them
}


@contextmanager
def house_style(medium: Medium = SCREEN) -> Iterator[None]:
    """Set ccgym's style for matplotlib within this context, for the medium."""
    size = medium.text_pt
    sizes: dict[Any, Any] = {
        "font.size": size,
        "axes.titlesize": size + 1,
        "axes.labelsize": size if medium.column else size + 1,
        "xtick.labelsize": size - 1 if medium.column else size,
        "ytick.labelsize": size - 1 if medium.column else size,
        "legend.fontsize": size - 1 if medium.column else size,
    }
    token = _medium.set(medium)
    try:
        with mpl.rc_context({**_RC, **sizes}):
            yield
    finally:
        _medium.reset(token)


def medium() -> Medium:
    """Return the medium of the enclosing :func:`house_style`."""
    return _medium.get()


class NotebookFigure(Figure):
    """A figure that notebooks show. Without this class, they show only figures of ``pyplot``."""

    def _repr_png_(self) -> bytes:
        shown = io.BytesIO()
        self.savefig(shown, format="png")
        return shown.getvalue()


def blank_figure(width_in: float, height_in: float, dpi: int = DPI) -> Figure:
    """Return a figure without axes, on an Agg canvas.

    Args:
        width_in: Width in inches.
        height_in: Height in inches.
        dpi: Dots per inch.
    """
    figure = NotebookFigure(figsize=(width_in, height_in), dpi=dpi)
    FigureCanvasAgg(figure)
    return figure


def axes_at(figure: Figure, left: float, bottom: float, width: float, height: float, **style: Any) -> Axes:
    """Add axes at a place in inches from the figure's lower left corner."""
    wide, high = figure.get_size_inches()
    return figure.add_axes((left / wide, bottom / high, width / wide, height / high), **style)


def color_bar_at(
    figure: Figure,
    left: float,
    bottom: float,
    width: float,
    height: float,
    colors: Colormap,
    ticks: Mapping[float, str],
) -> None:
    """Draw a horizontal bar of all colors, at a place in inches as for :func:`axes_at`.

    Args:
        figure: The figure.
        left: Left edge.
        bottom: Lower edge.
        width: Width.
        height: Height.
        colors: From left to right.
        ticks: Text by position: 0 at the left end, 1 at the right end. The first and last texts end with the bar.
    """
    axes = axes_at(figure, left, bottom, width, height)
    axes.imshow(np.linspace(0, 1, 256)[None, :], aspect="auto", cmap=colors, extent=(0, 1, 0, 1))
    axes.set_yticks([])
    axes.set_xticks(list(ticks), list(ticks.values()), fontsize=8.5)
    labels = axes.get_xticklabels()
    labels[0].set_horizontalalignment("left")
    labels[-1].set_horizontalalignment("right")
    axes.tick_params(length=0, pad=3)
    axes.grid(False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def text_at(figure: Figure, x: float, y: float, text: str, **style: Any) -> Text:
    """Write text at a place in inches from the figure's lower left corner, vertically centered."""
    return figure.text(x, y, text, transform=figure.dpi_scale_trans, **{"va": "center", **style})


def new_figure(width_in: float, height_in: float) -> tuple[Figure, Axes]:
    """Return a figure with one axes. Call within :func:`house_style`.

    Args:
        width_in: Width in inches; on paper, the width of a column is used.
        height_in: Height in inches; on paper, it follows from the axes. :func:`set_margins` may change it.
    """
    figure = blank_figure(*((COLUMN_IN, COLUMN_AXES_IN) if medium().column else (width_in, height_in)))
    return figure, figure.add_subplot()


def draw_capacity(axes: Axes, values: npt.ArrayLike, bin_s: float) -> float:
    """Shade the capacity per bin (Mbit/s, from time zero on); return the end of the last bin, seconds."""
    capacity = np.asarray(values, dtype=np.float64)
    edges = np.arange(capacity.size + 1) * bin_s
    axes.fill_between(
        edges, 0, np.append(capacity, capacity[-1:]), facecolor=CAPACITY_COLOR, edgecolor=CAPACITY_EDGE, linewidth=0.8
    )
    return float(edges[-1])


def save(figure: Figure, path: Path, *, parents: bool = False) -> None:
    """Write the figure in the format of the file's suffix; see :func:`~ccgym.files.atomic_write`.

    Equal figures give identical files: files contain no dates.
    """
    kind = path.suffix[1:].lower()
    date = {"svg": "Date", "pdf": "CreationDate"}.get(kind)
    buffer = io.BytesIO()
    canvas, dpi = figure.canvas, figure.dpi
    if medium().column:
        figure.set_dpi(PRINT_DPI)  # pixels in a PDF must be sharp in print
    try:
        # Figure.savefig draws everything twice, once to find the layout; ccgym's figures are arranged already.
        getattr(_CANVASES[kind](figure), f"print_{kind}")(buffer, metadata={date: None} if date else {})
    finally:
        figure.set_canvas(canvas)
        figure.set_dpi(dpi)
    atomic_write(path, buffer.getvalue(), parents=parents)


def write_figure(draw: Callable[..., Figure], stem: Path, *arguments: Any, paper: bool = False) -> None:
    """Draw a figure and write it in every format of :data:`~ccgym.report.figures.FORMATS`.

    Args:
        draw: Function that draws the figure.
        stem: The files without their suffixes.
        arguments: Arguments of ``draw``.
        paper: Whether to write the figure as a column of a paper, too.
    """
    *screen, last = figure_files(stem, paper=True)
    with house_style():
        figure = draw(*arguments)
        for file in screen:
            save(figure, file)
    if paper:
        with house_style(PAPER):
            save(draw(*arguments), last)


def figure_files(stem: Path, *, paper: bool = False) -> list[Path]:
    """Return the files of :func:`write_figure`."""
    return [stem.with_name(f"{stem.name}{suffix}") for suffix in (*FORMATS, *([PAPER_SUFFIX] if paper else []))]


def save_compact(figure: Figure, path: Path) -> None:
    """Write a PNG of 256 colors, in half the size and half the time, for reports with hundreds of figures."""
    few_colors(pixels(figure)).save(path, compress_level=6)


def pixels(figure: Figure, dpi: int = DPI) -> Image.Image:
    """Return the figure as an image."""
    figure.set_dpi(dpi)
    canvas: Any = figure.canvas
    canvas.draw()
    return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")


def few_colors(image: Image.Image) -> Image.Image:
    """Return the image with a palette of 256 colors; its upper left corner, the background, stays white."""
    reduced = image.quantize(256, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    # The quick method mixes white with similar colors.
    palette = reduced.getpalette() or []
    corner = int(np.asarray(reduced)[0, 0])
    palette[3 * corner : 3 * corner + 3] = [255, 255, 255]
    reduced.putpalette(palette)
    return reduced


def legible(color: str, *, dark: bool = False) -> str:
    """Return the color darkened until it is visible on white or, for a dark page, lightened.

    Args:
        color: Any color of matplotlib.
        dark: Whether the page is dark.

    Returns:
        ``"#rrggbb"``.
    """
    red, green, blue = to_rgb(color)
    hue, lightness, saturation = colorsys.rgb_to_hls(red, green, blue)
    while luminance(red, green, blue) < MIN_LUMINANCE if dark else luminance(red, green, blue) > MAX_LUMINANCE:
        lightness = 1 - 0.97 * (1 - lightness) if dark else 0.97 * lightness
        red, green, blue = colorsys.hls_to_rgb(hue, lightness, saturation)
    return "#" + "".join(f"{round(255 * part):02x}" for part in (red, green, blue))


def page_colors(color: str) -> list[str]:
    """Return a color for a light and for a dark page."""
    return [legible(color), legible(color, dark=True)]


def luminance(*rgb: float) -> float:
    """Return the relative luminance of a color (WCAG 2); its components are from 0 to 1."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def flow_color(index: int) -> str:
    """Return the color of a flow by its index from 0."""
    return FLOW_COLORS[index % len(FLOW_COLORS)]
