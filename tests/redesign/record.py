"""What the redesign must not change, as plain data: ``python tests/redesign/record.py`` writes ``expected.json``.

Trajectory hashes of every scheme and policy, the scores of the two quick suites, the bytes of Pantheon's files. Kept
for the time of the redesign; recorded at 90ff5df.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
EXPECTED = Path(__file__).with_name("expected.json")
PATHS = ("77.72mbps", "100.42mbps", "114.68mbps", "2.64mbps-poisson", "3.04mbps-poisson", "0.57mbps-poisson")
TIMESTAMP = re.compile(
    rb"^(# (init|base) timestamp|Start at|End at|# command line|# Below is generated)[^\n]*\n", re.MULTILINE
)


def trajectories() -> dict[str, list[Any]]:
    """Per scheme, path and company: the trajectory hash, and throughput, p95 delay and loss of every flow."""
    import ccgym

    names = [name for name in scheme_names() if name not in ("learned", "aimd")]
    paths: dict[str, Any] = {name: name for name in PATHS}
    for queue in ("codel", "fq_codel"):
        paths[queue] = ccgym.NetworkPath(rate="24mbps", rtt="40ms", queue={"kind": queue})
    keys, jobs = [], []
    for scheme in names:
        for key, path in paths.items():
            for company in ("", "+cubic") if key in PATHS else ("",):
                flows = [scheme, {"scheme": "cubic", "start": "2s"}][: 2 if company else 1]
                keys.append(f"{scheme} {key}{company}")
                jobs.append(ccgym.Job(path, flows, "10s", 3))
    found = {}
    for key, run in zip(keys, ccgym.simulate_many(jobs), strict=True):
        numbers = [[flow.throughput_mbps, flow.delay_p95_ms, flow.loss] for flow in run.flows]
        found[key] = [run.trajectory_hash, numbers]
    return found


def scheme_names() -> list[str]:
    """Every scheme that one can name."""
    from ccgym.schemes.registry import descriptions

    return [str(entry["name"]) for entry in descriptions()]


def _evaluate(out: Path, *arguments: str) -> None:
    command = [sys.executable, "evaluate.py", *arguments, "--out", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def calibrated() -> dict[str, list[float]]:
    """``calibrated --quick``: the scores of every scheme on every path."""
    with tempfile.TemporaryDirectory() as folder:
        _evaluate(Path(folder), "--suite", "calibrated", "--quick")
        card = json.loads((Path(folder) / "scorecard.json").read_text())
    return {f"{mark['path']} {mark['scheme']}": mark["scores"] for mark in card["path_results"]}


def weaknesses() -> dict[str, Any]:
    """``weaknesses --quick``: the verdict of every scheme, and every measure of every run."""
    with tempfile.TemporaryDirectory() as folder:
        _evaluate(Path(folder), "--suite", "weaknesses", "--quick")
        results = json.loads((Path(folder) / "weaknesses.json").read_text())
    return {
        f"{one['test']} {one['scheme']}": {
            "verdict": one["verdict"],
            "criteria": [criterion["value"] for criterion in one["criteria"]],
            "runs": {
                f"{run['condition']} {run['run']}": [run["seed"], run["trajectory"], run["values"]]
                for run in one["runs"]
            },
        }
        for one in results["outcomes"]
    }


def pantheon() -> dict[str, str]:
    """SHA-256 of every file that Pantheon's harness would write too, without the lines that say when."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        _evaluate(
            out, "--trace", "77.72mbps", "--schemes", "cubic,bbr,eagle", "--runs", "2", "--runtime", "10",
            "--logs", "all",
        )  # fmt: skip
        files = [*out.glob("*.log"), *out.glob("*_run?.csv"), out / "pantheon_perf.json"]
        files += [out / "pantheon_table.csv", out / "config.yml"]
        return {file.name: hashlib.sha256(TIMESTAMP.sub(b"", file.read_bytes())).hexdigest() for file in files}


RECORDED = (trajectories, calibrated, weaknesses, pantheon)

if __name__ == "__main__":
    EXPECTED.write_text(json.dumps({one.__name__: one() for one in RECORDED}, indent=1, sort_keys=True) + "\n")
