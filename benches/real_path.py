"""Maximum rate and punctuality of an emulated path, next to the same chain of mahimahi if it is installed.

One kernel flow for three seconds through delay, loss and a link of 4.8 Gbit/s, alternately over ccgym's and mahimahi's
path; the best of three counts. Then ccgym's endpoints, and the tunnel of runs between two machines, with both ends
here. One JSON line each: name, value, unit, and the ratio to mahimahi. The exit status is 1 if a path failed: ccgym's,
or mahimahi's if it is installed.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from ccgym import NetworkPath, RealPathError  # noqa: E402
from ccgym.config.hosts import HostPath, Hosts  # noqa: E402
from ccgym.emulation.remote import MTU  # noqa: E402
from ccgym.errors import PlatformError  # noqa: E402
from ccgym.evaluation.backends import backend  # noqa: E402
from ccgym.evaluation.prepared_run import Record  # noqa: E402
from ccgym.evaluation.run_record import RunRecord  # noqa: E402

CCGYM = [sys.executable, "-m", "ccgym"]
SECONDS = 3
ROUNDS = 3
FAST_LINES = 400
"""Opportunities in each millisecond: 4.8 Gbit/s, twice the rate that mahimahi fills; with many more it is too slow."""
CHAINS = {
    "delay_loss_link": "mm-delay 1 mm-loss uplink 0 mm-link {trace} {trace}",
    "link": "mm-link {trace} {trace}",
}
TCP_HEADERS = 52
"""Headers of IP and TCP with time stamps, bytes."""
NOTHING = Record(packets=False, series=0)


def emit(name: str, value: float, unit: str, **more: float) -> None:
    """Print one result."""
    print(json.dumps({"name": name, "value": value, "unit": unit, **more}), flush=True)


def run(path: NetworkPath, where: str, seconds: float = SECONDS, scheme: str = "tcp:cubic") -> RunRecord:
    """Run one kernel flow once."""
    return backend(where).run(path, [scheme], seconds, 1, NOTHING)


def gigabits(record: RunRecord) -> float:
    """Return the received payload of the flow, Gbit/s."""
    return record.flows[0].goodput_mbps / 1e3


def note(text: str) -> None:
    """Print a note on standard error."""
    print(f"bench: {text}", file=sys.stderr, flush=True)


def throughput(name: str, path: NetworkPath, backends: list[str]) -> None:
    """Measure the backends alternately. A backend that fails is removed from ``backends``, and not tried again."""
    best = dict.fromkeys(backends, 0.0)
    for _ in range(ROUNDS):
        for where in list(backends):
            try:
                best[where] = max(best[where], gigabits(run(path, where)))
            except (PlatformError, RealPathError) as error:
                note(f"{where}: {error}")
                backends.remove(where)
    ours, theirs = (best[where] if where in backends else None for where in ("emulated", "mahimahi"))
    if ours is not None:
        ratio = {"ratio": ours / theirs} if theirs else {}
        emit(f"path_gbps/{name}", ours, "Gbit/s of one kernel flow", **ratio)
    if theirs is not None:
        emit(f"path_gbps/{name}/mahimahi", theirs, "Gbit/s of one kernel flow")


def punctuality() -> None:
    """Measure how late packets leave a path of 100 Mbit/s; the median of three runs."""
    path = NetworkPath(rate="100mbps", rtt="20ms", queue="200p")
    found = []
    for _ in range(ROUNDS):
        report = run(path, "emulated", scheme="tcp:reno").path_report
        assert report is not None
        found.append(report["uplink_release"]["p99_ns"] / 1e3)
    emit("path_release_error_p99/100mbps", sorted(found)[ROUNDS // 2], "microseconds")


def endpoints() -> None:
    """Measure ccgym's sender and receiver over loopback, with Cubic."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    receiver = subprocess.Popen(
        [*CCGYM, "receiver", "--listen", address, "--once", "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        done = subprocess.run(
            [*CCGYM, "sender", "--to", address, "--scheme", "cubic", "--duration", str(SECONDS), "--json"],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        summary = json.loads(done.stdout.strip().splitlines()[-1])
        emit("udp_loopback_gbps/cubic", summary["stats"]["acked_bytes"] * 8 / SECONDS / 1e9, "Gbit/s")
    finally:
        receiver.kill()
        receiver.wait()


def tunnel() -> None:
    """Measure full packets of one kernel flow through both ends of a tunnel on this machine, over loopback."""
    here = Hosts(f"here:{ROOT}", remote_addr="127.0.0.1", ssh="sh -c 'eval \"$1\"'")
    best = max(gigabits(run(HostPath(here), "remote")) for _ in range(ROUNDS))
    emit("tunnel_packets_per_second", best * 1e9 / 8 / (MTU - TCP_HEADERS), "packets/s of one kernel flow")


def main() -> int:
    """Run all measurements, and return the exit status."""
    wanted = ["emulated", "mahimahi"]
    if shutil.which("mm-link") is None:
        note("mahimahi is not installed: the emulated path is measured without a comparison")
        wanted.remove("mahimahi")
    working = list(wanted)
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "fast.trace")
        trace.write_text("1\n" * FAST_LINES)
        for name, chain in CHAINS.items():
            throughput(name, NetworkPath.from_mahimahi(chain.format(trace=trace)), working)
    if "emulated" in working:
        punctuality()
    endpoints()
    tunnel()
    for where in wanted:
        if where not in working:
            note(f"FAILED: nothing was measured over {where}")
    return 0 if working == wanted else 1


if __name__ == "__main__":
    sys.exit(main())
