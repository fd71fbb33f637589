#!/usr/bin/env python3
"""Send known UDP traffic through real mm-link and keep its uplink log.

  record_mm_link.py WORK_DIR [--only NAME,NAME]

Each recorded/mm_link/NAME.json says what its case is: queue, trace and traffic. It and NAME.log.gz are written again.
A new case is a file of that name with these keys; its trace is in NAME.trace.gz where it is neither short, generated
nor a packaged one.
"""

import argparse
import json
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections import Counter
from dataclasses import asdict, dataclass

import machine
import replay_mm_link

PORT = 47002
HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("BUILD", HERE / "build"))
OUT = machine.RECORDED / "mm_link"
PACKAGED_TRACES = pathlib.Path("/usr/share/mahimahi/traces")


@dataclass(frozen=True)
class Phase:
    """`packets` packets from `start_ms`, `gap_us` apart, sizes repeating `ip_bytes`.

    `repeat` copies, `every_ms` apart.
    """

    start_ms: float
    packets: int
    gap_us: float
    ip_bytes: tuple[int, ...] = (1500,)
    repeat: int = 1
    every_ms: float = 0.0

    def schedule(self) -> list[tuple[int, int]]:
        return [
            (
                round(self.start_ms * 1e3 + turn * self.every_ms * 1e3 + i * self.gap_us),
                self.ip_bytes[i % len(self.ip_bytes)],
            )
            for turn in range(self.repeat)
            for i in range(self.packets)
        ]


@dataclass(frozen=True)
class Case:
    name: str
    about: str
    trace: tuple[int, ...]
    trace_facts: dict
    phases: tuple[Phase, ...]
    queue: str = "infinite"
    queue_args: str = ""
    once: bool = False


def trace_of(document: dict) -> tuple[int, ...]:
    """What a recording says of its trace, empty where that is a packaged one that is not installed."""
    kept = document["trace"]
    packaged = re.fullmatch(r"mahimahi-traces: (\S+), lines (?:of (\d+) to|up to) (\d+) ms.*", kept["source"])
    if packaged is None:
        return tuple(replay_mm_link.trace_of(document, []))
    name, first_ms, last_ms = packaged[1], int(packaged[2] or 0), int(packaged[3])
    file = PACKAGED_TRACES / name
    values = map(int, file.read_text().split()) if file.exists() else ()
    return tuple(value - first_ms for value in values if first_ms <= value <= last_ms)


def case_of(document: dict) -> Case:
    """The case that a recording is of."""
    return Case(
        document["name"],
        document["about"],
        trace_of(document),
        document["trace"],
        tuple(Phase(**{**phase, "ip_bytes": tuple(phase["ip_bytes"])}) for phase in document["sent"]["phases"]),
        document["queue"],
        document["queue_args"],
        document["once"],
    )


def schedule_of(case: Case) -> list[tuple[int, int]]:
    return sorted(entry for phase in case.phases for entry in phase.schedule())


def counts(log: str) -> dict:
    events = Counter()
    last = 0
    for line in log.splitlines():
        if line.startswith("#"):
            continue
        at, kind, *_ = line.split()
        events[kind] += 1
        last = int(at)
    return {"opportunities": events["#"], "arrivals": events["+"], "departures": events["-"],
            "not_departed": events["+"] - events["-"], "last_event_ms": last}  # fmt: skip


def record(case: Case, work_dir: pathlib.Path) -> None:
    folder = work_dir / case.name
    folder.mkdir(parents=True, exist_ok=True)
    os.chmod(folder, 0o777)
    for old in folder.iterdir():
        old.unlink()
    schedule = schedule_of(case)
    trace_name = f"{case.name}.trace"
    (folder / trace_name).write_text("".join(f"{line}\n" for line in case.trace))
    (folder / "schedule").write_text("".join(f"{at} {size}\n" for at, size in schedule))
    command = ["mm-link", trace_name, trace_name, "--uplink-log=uplink.log"]
    if case.once:
        command.append("--once")
    if case.queue != "infinite":
        command += [f"--uplink-queue={case.queue}", f"--uplink-queue-args={case.queue_args}"]
    # a second of rest lets the queue drain; --once ends the shell by itself
    inner = f"udp_source $MAHIMAHI_BASE {PORT} schedule > sent; sleep {60 if case.once else 1}"
    sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)  # without it each packet earns an ICMP error
    sink.bind(("0.0.0.0", PORT))
    environment = {**os.environ, "PATH": f"{BUILD}:{os.environ['PATH']}"}
    try:
        done = subprocess.run(
            # in a PID namespace of its own: a shell that dies leaves its dnsmasq behind
            ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc",
             *machine.as_user(*command, "--", "sh", "-c", inner)], cwd=folder, timeout=60, env=environment,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    finally:
        sink.close()
    log = (folder / "uplink.log").read_text()
    sent = (folder / "sent").read_text().split()
    result = counts(log)
    base, init = (
        int(next(line for line in log.splitlines() if line.startswith(f"# {key} timestamp:")).split()[-1])
        for key in ("base", "init")
    )
    document = {
        "name": case.name,
        "about": case.about,
        "command": f"{shlex.join(command)} -- sh -c '{inner}'",
        "queue": case.queue,
        "queue_args": case.queue_args,
        "once": case.once,
        "trace": case.trace_facts,
        "init_timestamp_ms": init,
        "base_timestamp_ms": base,
        "sent": {
            "starts": "about 0.3 s after base",
            "packets": len(schedule),
            "ip_bytes": sum(size for _, size in schedule),
            "phases": [asdict(phase) for phase in case.phases],
            "max_lateness_us": int(sent[1]) if len(sent) == 3 else None,
            "mean_lateness_us": int(sent[2]) if len(sent) == 3 else None,
        },
        "log": result,
        "exit_status": done.returncode,
        "standard_error": done.stderr.strip(),
        "load_average": machine.load()[0],
        "machine": machine.describe(),
    }
    machine.write_gzip(OUT / f"{case.name}.log.gz", log)
    (OUT / f"{case.name}.json").write_text(json.dumps(document, indent=1) + "\n")
    print(case.name, result, "late us", sent[1:], "exit", done.returncode, done.stderr.strip(), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work_dir", type=pathlib.Path)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    machine.require_root()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    wanted = set(filter(None, options.only.split(",")))
    for case in (case_of(json.loads(file.read_text())) for file in sorted(OUT.glob("*.json"))):
        if wanted and case.name not in wanted:
            continue
        if not case.trace:
            print(case.name, "skipped: its packaged trace is not installed", flush=True)
            continue
        record(case, options.work_dir)


if __name__ == "__main__":
    main()
