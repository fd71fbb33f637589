"""How our figures look: one place for fonts, colours and the saving of files.

Figures are made with matplotlib's object interface and the Agg canvas, never with ``pyplot``: no global state, no
display, safe in worker processes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

FLOW_COLOURS: Final = ("#1f5fbf", "#2a8f4f", "#c8372d", "#b8860b", "#0e8c99", "#a0369c")
"""Colours of flows 1, 2, …: Pantheon's cycle blue, green, red, yellow, cyan, magenta, darkened to be read on white."""

CAPACITY_COLOUR: Final = "linen"
"""Fill below the link's capacity, as Pantheon has it."""

CAPACITY_EDGE: Final = "#d8c9b6"
"""Outline of the capacity, so that it shows on a pale screen."""

INK: Final = "#222222"
"""Text and axes."""

MUTED: Final = "#6b6b6b"
"""Secondary text."""

DPI: Final = 100
"""Dots per inch of PNG figures."""

_RC: Final[dict[Any, Any]] = {
    "font.family": "DejaVu Sans",
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.titley": 1.0,  # a fixed place: looking for a free one costs a tenth of the drawing
    "axes.labelsize": 12,
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
    "legend.fontsize": 11,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "svg.fonttype": "path",
    "svg.hashsalt": "ccgym",
    "pdf.fonttype": 42,
    "path.simplify": True,
}


@contextmanager
def house_style() -> Iterator[None]:
    """Within this context, matplotlib draws in our style."""
    with mpl.rc_context(dict(_RC)):
        yield


def new_figure(width_in: float, height_in: float) -> tuple[Figure, Axes]:
    """A figure with one axes, on an Agg canvas; sizes in inches. Call within :func:`house_style`."""
    figure = Figure(figsize=(width_in, height_in), dpi=DPI)
    FigureCanvasAgg(figure)
    return figure, figure.add_subplot()


def save(figure: Figure, path: Path) -> None:
    """Write the figure in the format of the file's suffix, without dates, so that equal figures are equal files."""
    metadata: dict[str, Any] = {}
    if path.suffix == ".svg":
        metadata = {"Date": None}
    elif path.suffix == ".pdf":
        metadata = {"CreationDate": None}
    figure.savefig(path, metadata=metadata)


def save_compact(figure: Figure, path: Path) -> None:
    """Write a PNG of 256 colours: half the size and half the time, for figures that come by the hundred."""
    few_colours(pixels(figure)).save(path, compress_level=6)


def pixels(figure: Figure, dpi: int = DPI) -> Image.Image:
    """The figure as an image."""
    figure.set_dpi(dpi)
    canvas: Any = figure.canvas
    canvas.draw()
    return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")


def few_colours(image: Image.Image) -> Image.Image:
    """The image with a palette of 256 colours; its upper left corner, the background, stays white."""
    reduced = image.quantize(256, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    # The quick method mixes white with its neighbours.
    palette = reduced.getpalette() or []
    corner = int(np.asarray(reduced)[0, 0])
    palette[3 * corner : 3 * corner + 3] = [255, 255, 255]
    reduced.putpalette(palette)
    return reduced


def flow_colour(index: int) -> str:
    """Colour of a flow, by its index from 0."""
    return FLOW_COLOURS[index % len(FLOW_COLOURS)]
