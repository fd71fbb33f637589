"""Keeps what docs/coexistence.md shows of the experiment: its means in docs/data, its heat maps in docs/img.

python evaluate.py --experiment coexistence
python tools/coexistence.py results/coexistence
make docs
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Final

from kept import ROOT, keep_figure

from ccgym.experiments.load import load_experiment
from ccgym.experiments.spec import ExperimentSet

FIGURES: Final = {"": "share", "_2": "throughput-harm", "_3": "delay-harm", "_4": "loss-harm"}
"""Ends of the names of the experiment's figures, and what they show."""


def main(directory: Path) -> None:
    """Keep the means of every condition, a row each, and the figures with fewer colors."""
    found = load_experiment("coexistence")
    assert isinstance(found, ExperimentSet)
    metrics = list(found.experiments[0].metrics)
    rows: dict[tuple[str, str], dict[str, str]] = {}
    with (directory / "coexistence.csv").open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            rows.setdefault((row["scheme"], row["condition"]), {})[row["metric"]] = f"{float(row['mean']):.4g}"
    with (ROOT / "docs/data/coexistence.csv").open("w", encoding="utf-8", newline="") as kept:
        writer = csv.writer(kept, lineterminator="\n")
        for place, ((scheme, condition), values) in enumerate(rows.items()):
            at = dict(part.split("=") for part in condition.split(","))
            if place == 0:
                writer.writerow(["scheme", *at, *metrics])
            writer.writerow([scheme, *at.values(), *(values.get(name, "") for name in metrics)])
    for end, name in FIGURES.items():
        keep_figure(directory / f"coexistence_matrix{end}.png", f"coexistence-{name}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
