"""Write ccgym's results for docs/studies/published.md, next to published numbers, to docs/data.

python tools/published.py runs results/77.72mbps results/77.72mbps-emulated
python tools/published.py expectations
make site

``runs`` reads results directories of ``evaluate.py``. ``expectations`` runs the tests of the core that
docs/data/published.csv names, and writes the result of each test next to the published number.
"""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from pages.markdown import ROOT

from ccgym.evaluation.frames import rows_to_csv

RUN: Final = ("throughput_mbps", "delay_p95_ms", "loss")
TABLE: Final = "expectations::table"
EXPECTED: Final = re.compile(r"EXPECTED (\S+): (.*): (\S+) within (\S+), found (\S+)")


def runs(directories: list[str]) -> None:
    """Write the runs of results directories, a row each."""
    rows: list[dict[str, Any]] = []
    for directory in directories:
        found: dict[tuple[str, str], dict[str, Any]] = {}
        with Path(directory, "results.csv").open(encoding="utf-8") as lines:
            for row in csv.DictReader(lines):
                if row["flow"] == "1" and row["metric"] in RUN:
                    found.setdefault((row["scheme"], row["run"]), {})[row["metric"]] = _short(row["value"])
        for (scheme, run), values in found.items():
            rows.append({"results": Path(directory).name, "scheme": scheme, "run": run, **values})
    _keep("published-runs", rows)


def expectations() -> None:
    """Run the named tests, and write their results."""
    with (ROOT / "docs/data/published.csv").open(encoding="utf-8") as lines:
        tests = {row["test"] for row in csv.DictReader(lines)}
    # The lines of expectations.md are one test.
    tests = sorted({TABLE if test.startswith("expectations::") else test for test in tests})
    words = "cargo test --release --locked -p ccgym-sim --test behavior -- --nocapture --exact"
    command = [*words.split(), *tests]
    output = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    keys = ("test", "what", "expected", "tolerance", "found")
    rows = [dict(zip(keys, found, strict=True)) for found in EXPECTED.findall(output)]
    rows.sort(key=lambda row: (row["test"], row["what"]))
    _keep("expectations", [{**row, "found": _short(row["found"])} for row in rows])


def _keep(name: str, rows: list[dict[str, Any]]) -> None:
    (ROOT / f"docs/data/{name}.csv").write_text(rows_to_csv(rows), encoding="utf-8")


def _short(text: str) -> str:
    try:
        return f"{float(text):.4g}"
    except ValueError:
        return text


if __name__ == "__main__":
    job, *arguments = sys.argv[1:]
    runs(arguments) if job == "runs" else expectations()
