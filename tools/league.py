"""Write the rankings of the experiment for docs/studies/league.md to docs/data.

python evaluate.py --experiment league
python tools/league.py results/league
make site
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from pages.markdown import ROOT

from ccgym.evaluation.frames import rows_to_csv

KEPT: Final = (
    "section", "rank", "scheme", "rating", "rating_low", "rating_high", "first", "winning_rate", "winning_rate_exact",
    "mean", "worst", "share", "delay_ratio",
)  # fmt: skip
"""Columns of docs/data/league.csv, before the ranks by weight."""


def main(directory: Path) -> None:
    """Write rankings and published winning rates."""
    league: dict[str, Any] = json.loads((directory / "results.json").read_text(encoding="utf-8"))
    sections = {one["name"]: one for one in league["sections"]}
    rows = []
    for name, places in league["rankings"].items():
        section = sections.get(name, {"winning_rates": {}, "winning_rates_exact": {}, "means": {}})
        for place in places:
            scheme, score = place["scheme"], place["score"]
            values = {
                **place,
                **section["means"].get(scheme, {}),
                "section": name,
                "rating": score["mean"],
                "rating_low": score["low"],
                "rating_high": score["high"],
                "winning_rate": section["winning_rates"].get(scheme),
                "winning_rate_exact": section["winning_rates_exact"].get(scheme),
            }
            weights = league["weights"].get(scheme, {}) if name == "all" else {}
            row = {key: _short(values.get(key)) for key in KEPT}
            rows.append({**row, **{f"weight_{weight}": rank for weight, rank in weights.items()}})
    published = [
        {"section": one["name"], **{key: _short(value) for key, value in row.items()}}
        for one in league["sections"]
        for row in one["published"]
    ]
    _keep("league", rows)
    _keep("league-published", published)


def _keep(name: str, rows: list[dict[str, Any]]) -> None:
    (ROOT / f"docs/data/{name}.csv").write_text(rows_to_csv(rows), encoding="utf-8")


def _short(value: Any) -> Any:
    return f"{value:.4g}" if isinstance(value, float) else value


if __name__ == "__main__":
    main(Path(sys.argv[1]))
