"""Draws the figure of each scheme's page, docs/img/schemes/NAME.png: its portrait on three calibrated paths.

Run by ``make figures``; with names as arguments, only those. 64 colors keep a file below 200 kB.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from pages.markdown import ROOT
from pages.schemes import contestants
from PIL import Image

from ccgym.cli.main import main as ccgym

FOLDER = ROOT / "docs" / "img" / "schemes"
WIDTH = 1340


def draw(name: str) -> None:
    """Draw one."""
    with tempfile.TemporaryDirectory() as folder:
        large = Path(folder) / "portrait.png"
        if ccgym(["portrait", name, "-o", str(large)]) != 0:
            raise SystemExit(f"{name}: no portrait")
        image = Image.open(large).convert("RGB")
        size = (WIDTH, round(image.height * WIDTH / image.width))
        small = image.resize(size, Image.Resampling.LANCZOS).quantize(64, dither=Image.Dither.NONE)
        FOLDER.mkdir(parents=True, exist_ok=True)
        small.save(FOLDER / f"{name}.png", optimize=True)


if __name__ == "__main__":
    for scheme in sys.argv[1:] or [entry["name"] for entry in contestants()]:
        draw(scheme)
