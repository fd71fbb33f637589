"""Cost of a run of ccperf in ccgym and in ns-3: processor time, a JSON line each, and the ratio if ns-3 is installed.

Path, flows, and length are the same. ns-3 runs with the driver in ``tests/differential/record/ns3``, which repeats
ccperf's experiment 85 to the packet.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ccgym import NetworkPath, Record, simulate

ROOT = Path(__file__).resolve().parents[1]
NAME = "ns3_seconds"
SECONDS = 15
DRIVER = ROOT / "tests/differential/record/ns3/dumbbell.cc"
LIBRARIES = ("applications", "internet", "point-to-point", "traffic-control", "network", "core")
ALGORITHMS = {"reno": "TcpNewReno", "cubic": "TcpCubic", "vegas": "TcpVegas"}
RUNS = 3


class Experiment(NamedTuple):
    """A run of ccperf."""

    mbps: int
    packets: int
    rtt_ms: int
    schemes: tuple[str, ...]
    discipline: str = "droptail"


EXPERIMENTS: Mapping[str, Experiment] = {
    "reno_fairness": Experiment(32, 40, 15, ("reno", "reno")),
    "queue_disciplines": Experiment(16, 20, 15, ("reno",), "codel"),
    "scalability": Experiment(256, 1280, 60, ("cubic",)),
    "synchronous_fairness": Experiment(128, 160, 15, ("reno",) * 8),
}


def main(words: Sequence[str]) -> int:
    """Run the benchmarks whose names contain one of the words."""
    with tempfile.TemporaryDirectory() as folder:
        driver = compiled(Path(folder))
        for name, experiment in EXPERIMENTS.items():
            full = f"{NAME}/{name}"
            if not words or any(word in full for word in words):
                value = min(ours(experiment) for _ in range(RUNS))
                ratio = {} if driver is None else {"ratio": theirs(driver, experiment) / value}
                print(json.dumps({"name": full, "unit": "s", "value": value, **ratio}), flush=True)
    return 0


def compiled(folder: Path) -> Path | None:
    """Return the compiled driver; None, with a note, if ns-3 or a compiler is not installed."""
    program = folder / "dumbbell"
    libraries = [f"-lns3-{one}" for one in LIBRARIES]
    command = ["g++", "-O2", "-std=c++17", str(DRIVER), "-o", str(program), *libraries]
    if shutil.which("g++") and subprocess.run(command, capture_output=True, check=False).returncode == 0:
        return program
    print("bench: no ratio to ns-3: its library is not installed (libns3-dev libgsl-dev g++)", file=sys.stderr)
    return None


def ours(experiment: Experiment) -> float:
    """Return seconds of processor time in ccgym, with the series for ccperf's metrics."""
    path = NetworkPath(
        rate=f"{experiment.mbps}mbps",
        rtt=f"{experiment.rtt_ms}ms",
        queue={"kind": experiment.discipline, "limit": f"{experiment.packets}p"},
        overhead=2,
        device_packets=1,
    )
    flows = [{"scheme": one, "params": {"mode": "ns3"}, "profile": "ns3", "ack_every": 1} for one in experiment.schemes]
    began = time.process_time()
    simulate(path, flows, SECONDS, record=Record(packets=False, series="10ms"))
    return time.process_time() - began


def theirs(driver: Path, experiment: Experiment) -> float:
    """Return seconds of processor time in ns-3."""
    words = {
        "rate": f"{experiment.mbps}Mbps",
        "queue": f"{experiment.packets}p",
        "discipline": "CoDel" if experiment.discipline == "codel" else "Fifo",
        "rtts": ",".join([str(experiment.rtt_ms)] * len(experiment.schemes)),
        "algs": ",".join(ALGORITHMS[one] for one in experiment.schemes),
        "seconds": str(SECONDS),
    }
    command = [str(driver), *(f"--{name}={value}" for name, value in words.items())]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"bench: {' '.join(command)} ended with status {process.returncode}")
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
