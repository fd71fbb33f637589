"""The benchmarks of ``make bench``: one JSON line ``{name, value, unit}`` each, on standard output.

Wall times come from the native benchmark program and the Python programs in ``benches/``. If valgrind is installed
(for root, it is installed automatically), instruction counts of the hot paths are printed, too: these do not depend
on other programs. Words on the command line choose the benchmarks whose names contain one of them.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence

from console import ROOT, SetupError, run
from machine import has_apt, is_root

#: Workloads that are counted with callgrind: a run's cost per packet.
HOT_PATHS = (
    "sim_packets_per_second/reno",
    "sim_packets_per_second/cubic",
    "sim_packets_per_second/bbr",
    "link_packets_per_second/rate",
    "link_packets_per_second/trace",
)
#: Benchmarks in Python, and the names of their results.
PROGRAMS = {
    "benches/waiting.py": "simulate_seconds evaluate_seconds sweep_seconds command_seconds import_seconds",
    "benches/flows.py": "flow_us_per_second",
    "benches/python_scheme.py": "sim_packets_per_second/python",
    "benches/environments.py": "env_steps_per_second/single env_steps_per_second/vector",
    "benches/ns3.py": "ns3_seconds",
    "benches/training.py": "train_steps_per_second",
    "benches/real_path.py": "path_gbps path_release_error_p99 udp_loopback_gbps tunnel_packets_per_second",
}
BINARY = ROOT / "target" / "release" / "ccgym-bench"
LOG = ROOT / ".cache" / "bench.log"


def emit(name: str, value: float, unit: str) -> None:
    """Print one result."""
    print(json.dumps({"name": name, "value": value, "unit": unit}), flush=True)


def note(text: str) -> None:
    """Print a note on standard error."""
    print(f"bench: {text}", file=sys.stderr, flush=True)


def passed_on(command: Sequence[str]) -> tuple[int, int]:
    """Run a program that prints results, print them, and return its exit status and the number of lines."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        count = 0
        for line in process.stdout:
            print(line, end="", flush=True)
            count += 1
    return process.returncode, count


def instructions(name: str) -> float:
    """Return the instructions per packet of one workload, from one run with callgrind."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", str(BINARY), "--once", name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    collected = re.search(r"Collected\s*:\s*(\d+)", done.stderr)
    if collected is None:
        raise SetupError(f"valgrind reported no instruction count for {name}:\n{done.stderr}")
    return int(collected.group(1)) / json.loads(done.stdout)["value"]


def main(words: Sequence[str]) -> int:
    """Run the benchmarks, and return the exit status."""
    LOG.parent.mkdir(exist_ok=True)
    LOG.write_text("", encoding="utf-8")

    def wanted(name: str) -> bool:
        return not words or any(word in name for word in words)

    try:
        build = ["cargo", "build", "--release", "--locked", "--package", "ccgym-bench"]
        run(build, "compiling the benchmarks", log=LOG)
        status, results = passed_on([str(BINARY), *words])
        for program, names in PROGRAMS.items():
            if not words or any(word in name for word in words for name in names.split()):
                failed, count = passed_on([sys.executable, str(ROOT / program), *words])
                status, results = status | failed, results + count
        counted = [name for name in HOT_PATHS if wanted(f"instructions_per_packet/{name}")]
        if not results + len(counted):
            note(f"no benchmark name contains {' or '.join(words)}")
            return 2
        if counted and shutil.which("valgrind") is None and is_root() and has_apt():
            with contextlib.suppress(SetupError):
                run(["apt-get", "install", "-y", "--no-install-recommends", "valgrind"], "installing valgrind", log=LOG)
        if counted and shutil.which("valgrind") is None:
            note("no instruction counts: valgrind is not installed (sudo apt-get install valgrind)")
            counted = []
        for name in counted:
            short = name.replace("_packets_per_second", "")
            emit(f"instructions_per_packet/{short}", instructions(name), "instructions/packet")
    except SetupError as error:
        note(str(error))
        return 2
    if status:
        note("FAILED: a measurement is missing (see above)")
    return status


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
