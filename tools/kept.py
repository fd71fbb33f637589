"""What tools share that keep results of experiments in docs/."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PIL import Image

from ccgym.report.style import few_colors

ROOT: Final = Path(__file__).parents[1]


def keep_figure(drawn: Path, name: str) -> None:
    """Keep a figure with fewer colors as docs/img/NAME.png."""
    with Image.open(drawn) as image:
        few_colors(image.convert("RGB")).save(ROOT / f"docs/img/{name}.png", optimize=True)
