#!/usr/bin/env python3
"""Run the evaluations that hold simulator, emulated path and mahimahi against each other, and keep their numbers.

  record_real_path.py [WORK_DIR [--only NAME,NAME]]

Each experiment is a few commands that anyone can type; they resume, so that a second call costs nothing. Their runs
become recorded/real_path/summary.json.gz. As root; half an hour in which nothing else should run.
"""

import argparse
import gzip
import json
import pathlib
import shlex
import subprocess
import sys
from statistics import fmean

import machine

ROOT = pathlib.Path(__file__).resolve().parents[3]
OUT = machine.RECORDED / "real_path" / "summary.json.gz"
TRACES = pathlib.Path("/usr/share/mahimahi/traces")
CALIBRATED = ("0.57mbps-poisson", "2.64mbps-poisson", "3.04mbps-poisson", "77.72mbps", "100.42mbps", "114.68mbps")
LOSSLESS = "mm-delay 51 mm-link 77.72mbps.trace 77.72mbps.trace --uplink-queue=droptail --uplink-queue-args=packets=94"
CELLULAR = (
    f"mm-delay 20 mm-link {TRACES}/TMobile-LTE-short.down {TRACES}/TMobile-LTE-short.up "
    "--uplink-queue=droptail --uplink-queue-args=packets=250"
)


def evaluate(backend: str, schemes: str, *more: str) -> list[str]:
    return ["evaluate.py", "--backend", backend, "--schemes", schemes, "--logs", "none", "--no-figures", *more]


def gap(path: str) -> list[str]:
    return [
        "-m",
        "ccgym.cli.main",
        "compare",
        "backends",
        "--trace",
        path,
        "--schemes",
        "bbr,cubic",
        "--backends",
        "sim,emulated",
    ]


EXPERIMENTS = {
    "published": {
        "emulated": evaluate("emulated", "tcp:bbr,tcp:cubic,bbr,cubic", "--trace", "77.72mbps", "--runs", "5"),
        "mahimahi": evaluate("mahimahi", "tcp:bbr,tcp:cubic", "--trace", "77.72mbps", "--runs", "5", "--jobs", "2"),
    },
    # Without the coin, which mahimahi cannot be told how to throw, a run of Cubic is like any other.
    "without random loss": {
        backend: evaluate(backend, "tcp:bbr,tcp:cubic", "--mahimahi", LOSSLESS, "--runs", "3", "--jobs", "2")
        for backend in ("emulated", "mahimahi")
    },
    "cellular": {
        backend: evaluate(
            backend, "tcp:bbr,tcp:cubic", "--mahimahi", CELLULAR, "--runs", "2", "--runtime", "60", "--jobs", "2"
        )
        for backend in ("emulated", "mahimahi")
    },
    **{f"calibrated {path}": {"gap": gap(path)} for path in CALIBRATED},
}


def rows(results: pathlib.Path) -> list[dict]:
    document = json.loads(results.read_text())
    found = []
    for cell in document["cells"]:
        total, report = cell["record"]["pantheon"]["total"], cell["record"].get("path_report") or {}
        release = report.get("uplink_release") or {}
        found.append(
            {
                "backend": document["parameters"].get("backend", "sim"),
                "scheme": cell["scheme"],
                "run": cell["run"],
                "runtime_s": document["parameters"]["runtime_s"],
                "throughput_mbps": round(total["throughput_mbps"], 4),
                "delay_p95_ms": round(total["delay_p95_ms"], 3),
                "loss": round(total["loss"], 6),
                "release_p99_us": round(release["p99_ns"] / 1e3, 1) if release else None,
                "limited": report.get("limited"),
            }
        )
    return found


def table() -> str:
    """The means of what is recorded, as docs/studies/validation.md has them."""
    lines = ["| experiment | scheme | backend | runs | Mbit/s | p95 delay (ms) | loss (%) |"]
    lines.append("|---|---|---|---:|---:|---:|---:|")
    for name, entry in json.loads(gzip.decompress(OUT.read_bytes()))["experiments"].items():
        for scheme in dict.fromkeys(row["scheme"] for row in entry["rows"]):
            for backend in dict.fromkeys(row["backend"] for row in entry["rows"]):
                found = [row for row in entry["rows"] if (row["scheme"], row["backend"]) == (scheme, backend)]
                if found:
                    means = [
                        fmean(row[field] for row in found) for field in ("throughput_mbps", "delay_p95_ms", "loss")
                    ]
                    mark = " ‡" if any(row["limited"] for row in found) else ""
                    lines.append(
                        f"| {name} | {scheme} | {backend}{mark} | {len(found)} "
                        f"| {means[0]:.2f} | {means[1]:.2f} | {100 * means[2]:.2f} |"
                    )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=pathlib.Path, nargs="?", help="where results go; without it the table is printed")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    if arguments.work is None:
        print(table())
        return
    wanted = [name for name in arguments.only.split(",") if name]
    kept = json.loads(gzip.decompress(OUT.read_bytes()))["experiments"] if OUT.exists() else {}
    for name, commands in EXPERIMENTS.items():
        if wanted and not any(word in name for word in wanted):
            continue
        entry = {"commands": [], "rows": []}
        for label, words in commands.items():
            folder = arguments.work / f"{name}-{label}".replace(" ", "-")
            print(f"{name}: {label}", flush=True)
            subprocess.run([sys.executable, *words, "--out", str(folder)], cwd=ROOT, check=True, stdout=sys.stderr)
            entry["commands"].append(shlex.join(["python", *words]))
            for results in sorted(folder.rglob("results.json")):
                entry["rows"] += rows(results)
        kept[name] = entry
    OUT.parent.mkdir(exist_ok=True)
    text = json.dumps({"machine": machine.describe(), "experiments": kept}, indent=1, ensure_ascii=False)
    machine.write_gzip(OUT, text + "\n")


if __name__ == "__main__":
    main()
