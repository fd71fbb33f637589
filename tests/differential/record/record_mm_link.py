#!/usr/bin/env python3
"""Send known UDP traffic through real mm-link and keep its uplink log.

  record_mm_link.py WORK_DIR [--only NAME,NAME]

Each case of CASES becomes recorded/mm_link/NAME.log.gz and NAME.json (and
NAME.trace.gz where the trace is neither short, generated nor a packaged one).
"""

import argparse
import json
import os
import pathlib
import random
import shlex
import signal
import socket
import subprocess
import sys
from collections import Counter
from dataclasses import asdict, dataclass, field

import machine
import make_trace

PORT = 47002
HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("BUILD", HERE / "build"))
OUT = machine.RECORDED / "mm_link"
PACKAGED_TRACES = pathlib.Path("/usr/share/mahimahi/traces")
SHORT_TRACE = 64
MIXED_SIZES = (1500, 40, 576, 1028, 300, 1500, 64, 1240, 104, 776)


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
    phases: tuple[Phase, ...]
    queue: str = "infinite"
    queue_args: str = ""
    trace_source: str = ""
    once: bool = False
    keep_trace: bool = field(default=True)


def steady(start_ms: float, seconds: float, mbps: float, ip_bytes: tuple[int, ...] = (1500,)) -> Phase:
    mean = sum(ip_bytes) / len(ip_bytes)
    gap = mean * 8 / mbps
    return Phase(start_ms, int(seconds * 1e6 / gap), gap, ip_bytes)


def bursts(start_ms: float, packets: int, every_ms: float, repeat: int, ip_bytes: tuple[int, ...] = (1500,)) -> Phase:
    return Phase(start_ms, packets, 40, ip_bytes, repeat, every_ms)


def packaged_excerpt(name: str, first_ms: int, last_ms: int) -> tuple[int, ...]:
    file = PACKAGED_TRACES / name
    values = map(int, file.read_text().split()) if file.exists() else ()
    return tuple(v - first_ms for v in values if first_ms <= v <= last_ms)


def gappy_trace(seed: int, seconds: float) -> tuple[int, ...]:
    """Bursts of 1 to 12 opportunities within a few ms, silences of up to 0.6 s."""
    rng, now, lines = random.Random(seed), 0.0, []
    while now < seconds * 1000:
        lines += sorted(int(now + rng.uniform(0, 6)) for _ in range(rng.randint(1, 12)))
        now += rng.expovariate(1 / 12) + 7 if rng.random() < 0.97 else rng.uniform(150, 600)
    return tuple(sorted(lines))


def poisson_trace(seed: int, mbps: float, seconds: float) -> tuple[int, ...]:
    rng, now, lines = random.Random(seed), 0.0, []
    while now < seconds * 1000:
        lines.append(int(now))
        now += rng.expovariate(mbps / 12)
    return tuple(lines)


TWELVE = {"trace": (1,), "trace_source": "make_trace.py ones 1"}
OVERLOAD_THEN_BURSTS = (steady(0, 2, 14), bursts(2600, 40, 180, 8))

CASES = (
    Case(
        "infinite", "overload, then bursts, no limit", phases=(steady(0, 1.5, 14), bursts(2200, 40, 180, 6)), **TWELVE
    ),
    Case(
        "droptail_packets10",
        "overload, then bursts",
        phases=OVERLOAD_THEN_BURSTS,
        queue="droptail",
        queue_args="packets=10",
        **TWELVE,
    ),
    Case(
        "droptail_packets1",
        "policer of one packet",
        phases=(steady(0, 1.5, 8), steady(1600, 1.5, 20), bursts(3300, 10, 50, 10)),
        queue="droptail",
        queue_args="packets=1",
        **TWELVE,
    ),
    Case(
        "droptail_bytes9000",
        "byte limit, full-size packets",
        phases=OVERLOAD_THEN_BURSTS,
        queue="droptail",
        queue_args="bytes=9000",
        **TWELVE,
    ),
    Case(
        "droptail_bytes15000_mixed",
        "byte limit, mixed sizes: a small packet fits where a large one did not",
        phases=(steady(0, 2, 15, MIXED_SIZES), bursts(2400, 50, 150, 8, MIXED_SIZES)),
        queue="droptail",
        queue_args="bytes=15000",
        **TWELVE,
    ),
    Case(
        "droptail_both_mixed",
        "both limits: now the packet count binds, now the bytes",
        phases=(
            steady(0, 1.5, 15, MIXED_SIZES),
            bursts(1900, 60, 120, 6, (64,)),
            bursts(2700, 40, 120, 6),
            bursts(3500, 60, 120, 6, MIXED_SIZES),
        ),
        queue="droptail",
        queue_args="packets=20, bytes=15000",
        **TWELVE,
    ),
    Case(
        "droptail_small_intransit",
        "100-byte packets, limit 20: 14.5 leave per opportunity, a partial one is in transit",
        trace=(3,),
        trace_source="one opportunity every 3 ms",
        phases=(steady(0, 2, 5, (100,)), bursts(2300, 80, 100, 8, (100,))),
        queue="droptail",
        queue_args="packets=20",
    ),
    Case(
        "drophead_packets10",
        "overload, then bursts",
        phases=OVERLOAD_THEN_BURSTS,
        queue="drophead",
        queue_args="packets=10",
        **TWELVE,
    ),
    Case(
        "drophead_packets10_mixed",
        "mixed sizes, so that partly sent packets meet head drops",
        phases=(steady(0, 2, 15, MIXED_SIZES), bursts(2400, 50, 150, 8, MIXED_SIZES)),
        queue="drophead",
        queue_args="packets=10",
        **TWELVE,
    ),
    Case(
        "drophead_bytes15040",
        "byte limit of ten full-size units",
        phases=OVERLOAD_THEN_BURSTS,
        queue="drophead",
        queue_args="bytes=15040",
        **TWELVE,
    ),
    Case(
        "drophead_bytes_mixed",
        "a large arrival that needs two head drops trips an assertion and ends the shell",
        phases=(
            Phase(0, 8, 1000, (1500,)),
            bursts(100, 40, 100, 3, (100,)),
            bursts(150, 40, 100, 3, (*(100,) * 20, 1500)),
        ),
        queue="drophead",
        queue_args="bytes=3000",
        **TWELVE,
    ),
    Case(
        "codel",
        "steady overload, pause, burst, light load, overload again (re-entry)",
        phases=(steady(0, 2.5, 14), bursts(3200, 60, 1, 1), steady(3400, 0.8, 6), steady(4200, 2, 16)),
        queue="codel",
        queue_args="packets=100, target=5, interval=100",
        **TWELVE,
    ),
    Case(
        "codel_tight",
        "low limit and short interval, mixed sizes",
        phases=(steady(0, 2, 16, MIXED_SIZES), steady(2300, 1.7, 13)),
        queue="codel",
        queue_args="packets=40, target=2, interval=20",
        **TWELVE,
    ),
    *(
        Case(
            f"pie_{run}",
            "overload, pause, burst, light load, overload (unseeded: compare statistically)",
            phases=(steady(0, 5, 14), bursts(5600, 80, 1, 1), steady(6000, 1, 6), steady(7000, 2, 18)),
            queue="pie",
            queue_args="packets=200, qdelay_ref=20, max_burst=100",
            **TWELVE,
        )
        for run in (1, 2, 3, 4, 5)
    ),
    Case(
        "pie_low_ref",
        "short reference and burst allowance, tail drops too",
        phases=(steady(0, 4, 20),),
        queue="pie",
        queue_args="packets=60, qdelay_ref=10, max_burst=30",
        **TWELVE,
    ),
    Case(
        "carry_over",
        "mixed sizes, opportunities 3 ms apart: packing and carried-over partial packets",
        trace=(3,),
        trace_source="one opportunity every 3 ms",
        phases=(
            steady(0, 1.5, 3.5, MIXED_SIZES),
            steady(1700, 1, 6, (1028,)),
            bursts(3800, 30, 120, 8, (700, 700, 1500)),
        ),
    ),
    Case(
        "carry_over_idle",
        "light mixed load: left-over bytes of an opportunity are lost when the queue is empty",
        trace=(2, 3, 3, 7, 10),
        phases=(steady(0, 3, 1.2, MIXED_SIZES),),
    ),
    Case(
        "first_value_zero",
        "the first opportunity of a cycle coincides with the last of the one before",
        trace=(0, 0, 5, 9, 9, 20),
        phases=(steady(0, 1.5, 3), steady(1700, 1, 8), bursts(3600, 12, 90, 8)),
    ),
    Case(
        "equal_values",
        "several opportunities in one ms, five per 7 ms",
        trace=(1, 1, 1, 4, 7),
        phases=(steady(0, 1.5, 8), bursts(1700, 20, 70, 12)),
        queue="droptail",
        queue_args="packets=12",
    ),
    Case(
        "gappy",
        "bursty trace with silences up to 0.6 s, wraps after about 4 s",
        trace=gappy_trace(11, 4.0),
        trace_source="gappy_trace(11, 4.0) of record_mm_link.py",
        phases=(steady(0, 5, 4), bursts(5300, 40, 250, 10)),
        queue="droptail",
        queue_args="packets=60",
    ),
    Case(
        "poisson",
        "Poisson opportunities, 3.04 Mbit/s",
        trace=poisson_trace(7, 3.04, 5.0),
        trace_source="poisson_trace(7, 3.04, 5.0) of record_mm_link.py",
        phases=(steady(0, 4, 3.2), steady(4600, 1.5, 2.0, MIXED_SIZES)),
        queue="droptail",
        queue_args="packets=30",
    ),
    Case(
        "cellular_umts",
        "10 s of a recorded UMTS uplink, full-size packets",
        trace=packaged_excerpt("TMobile-UMTS-driving.up", 20000, 32000),
        keep_trace=False,
        trace_source="mahimahi-traces: TMobile-UMTS-driving.up, lines of 20000 to 32000 ms, minus 20000",
        phases=(steady(0, 10, 1.4),),
        queue="droptail",
        queue_args="packets=50",
    ),
    Case(
        "cellular_lte",
        "10 s of a recorded LTE uplink, mixed sizes",
        trace=packaged_excerpt("Verizon-LTE-short.up", 0, 12000),
        keep_trace=False,
        trace_source="mahimahi-traces: Verizon-LTE-short.up, lines up to 12000 ms",
        phases=(steady(0, 6, 6, MIXED_SIZES), bursts(6200, 60, 200, 18)),
        queue="droptail",
        queue_args="packets=100",
    ),
    Case(
        "once",
        "--once in both directions, a trace of 2.5 s, traffic beyond its end",
        trace=tuple(range(2, 2501, 2)),
        trace_source="range(2, 2501, 2)",
        phases=(steady(0, 4, 7),),
        once=True,
    ),
    Case(
        "77.72mbps_droptail94",
        "the Pantheon's calibrated link: 90 Mbit/s, then bursts",
        trace=tuple(make_trace.constant_rate(77.72)),
        keep_trace=False,
        trace_source="make_trace.py constant 77.72",
        phases=(steady(0, 1.5, 90), bursts(1700, 160, 100, 12)),
        queue="droptail",
        queue_args="packets=94",
    ),
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
    trace: dict = {"entries": len(case.trace), "period_ms": case.trace[-1], "source": case.trace_source or "literal"}
    if len(case.trace) <= SHORT_TRACE:
        trace["ms"] = case.trace
    elif case.keep_trace:
        trace["file"] = f"{trace_name}.gz"
        machine.write_gzip(OUT / trace["file"], (folder / trace_name).read_text())
    else:
        trace["file"] = None
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
        "trace": trace,
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
    OUT.mkdir(parents=True, exist_ok=True)
    wanted = set(filter(None, options.only.split(",")))
    for case in CASES:
        if wanted and case.name not in wanted:
            continue
        if not case.trace:
            print(case.name, "skipped: its packaged trace is not installed", flush=True)
            continue
        record(case, options.work_dir)


if __name__ == "__main__":
    main()
