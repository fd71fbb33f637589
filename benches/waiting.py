"""Waiting times of users, end to end: one JSON line each.

``bare`` is the time of the simulator alone for the same packets, without records, on the same machine immediately
before, and ``ratio`` is the user's waiting time divided by it. An evaluation is run once, all others several times, and
the fastest run counts: noise can only slow a run down.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ccgym import NetworkPath, Record, _core, simulate
from ccgym.evaluation.experiment import Experiment
from ccgym.evaluation.prepared_run import PreparedRun, prepare
from ccgym.schemes.groups import compared_schemes

ROOT = Path(__file__).resolve().parents[1]
BARE = Record(packets=False, series=0)
FAST = NetworkPath(rate="1gbps", rtt="20ms", queue="1bdp")
SWEPT = "mm-delay $D mm-link 12mbps 12mbps --uplink-queue=droptail --uplink-queue-args=packets=60"
DELAYS = [str(delay) for delay in range(10, 50)]
RUNS = 5
"""Number of repetitions of commands that take about a second."""


def main(words: Sequence[str]) -> int:
    """Run the benchmarks whose names contain one of the words."""
    for name, measure in MEASURED.items():
        if not words or any(word in name for word in words):
            unit = "ms/run" if name.startswith("sweep") else "s"
            print(json.dumps({"name": name, "unit": unit, **measure()}), flush=True)
    return 0


def fastest(work: Callable[[], object]) -> float:
    """Return the wall time of a function, the fastest of several calls, seconds."""
    times = []
    for _ in range(RUNS):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def bare(runs: Iterable[PreparedRun]) -> float:
    """Return the wall time of the simulator alone on all processors, seconds."""

    def run(one: PreparedRun) -> None:
        policies = {key: policy.native for key, policy in one.policies.items()}
        _core.simulate(json.dumps(one.document), one.compiled.traces, policies)

    prepared = list(runs)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return fastest(lambda: list(pool.map(run, prepared)))


def compared(value: float, alone: float, per: int = 1, **more: float) -> dict[str, float]:
    """Return a result with the time of the simulator alone."""
    scale = 1 if per == 1 else 1e3 / per
    return {"value": scale * value, "bare": scale * alone, "ratio": value / alone, **more}


def simulating(record: Record | None) -> dict[str, float]:
    """Measure a run of 5 million packets from Python."""
    alone = bare([prepare(FAST, ["cubic"], "60s", 1, BARE)])
    return compared(fastest(lambda: simulate(FAST, ["cubic"], "60s", record=record)), alone)


def command(*words: str) -> float:
    """Run a command of ccgym in a separate process; return the maximum memory of it and its children, MB."""
    process = subprocess.Popen([sys.executable, "-m", "ccgym", *words], cwd=ROOT, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"ccgym {' '.join(words)} ended with {os.waitstatus_to_exitcode(status)}")
    return usage.ru_maxrss / 1e3


def evaluating(*options: str) -> dict[str, float]:
    """Measure README's evaluation into an empty directory, its size on disk, and the maximum memory of a process."""
    experiment = Experiment(path="77.72mbps", schemes=compared_schemes(real=False))  # type: ignore[arg-type]
    alone = bare(prepare(one.path, one.contender.flows, "30s", one.seed, BARE) for one in experiment.planned())
    with tempfile.TemporaryDirectory() as out:
        began = time.perf_counter()
        memory = command("evaluate", "--trace", "77.72mbps", "--out", out, *options)
        took = time.perf_counter() - began
        sizes = [file.stat().st_size for file in Path(out).rglob("*") if file.is_file()]
    return compared(took, alone, megabytes=sum(sizes) / 1e6, files=len(sizes), memory_megabytes=memory)


def sweeping() -> dict[str, float]:
    """Measure a run of 30 s at 12 Mbit/s among many: the time of two more runs per condition."""
    paths = [SWEPT.replace("$D", delay) for delay in DELAYS]
    runs = [prepare(path, ["cubic"], "30s", seed, BARE) for path in paths for seed in (1, 2)]

    def sweep(count: str) -> None:
        with tempfile.TemporaryDirectory() as out:
            words = ("--mahimahi", SWEPT, "--sweep", f"D={','.join(DELAYS)}", "--schemes", "cubic", "--no-figures")
            command("evaluate", *words, "--runs", count, "--out", out)

    return compared(fastest(partial(sweep, "3")) - fastest(partial(sweep, "1")), bare(runs), len(runs))


def importing(statement: str) -> dict[str, float]:
    """Measure a statement in a new interpreter, without the interpreter's start."""
    program = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    run = partial(subprocess.check_output, [sys.executable, "-c", program], cwd=ROOT)
    return {"value": min(float(run()) for _ in range(RUNS))}


MEASURED: dict[str, Callable[[], dict[str, float]]] = {
    "simulate_seconds/defaults": partial(simulating, None),
    "simulate_seconds/numbers": partial(simulating, Record(packets=False)),
    "evaluate_seconds/whole": evaluating,
    "evaluate_seconds/no_figures": partial(evaluating, "--no-figures"),
    "sweep_seconds/run": sweeping,
    "command_seconds/help": lambda: {"value": fastest(partial(command, "--help"))},
    "import_seconds": partial(importing, "import ccgym"),
    "import_seconds/simulate": partial(importing, "from ccgym import NetworkPath, simulate"),
}


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
