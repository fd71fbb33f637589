#!/usr/bin/env python3
"""Send the same UDP streams through our shell and through real mm-link, and compare their uplink logs.

  record_shell.py [--repeat N] [--at-once N] [--only NAME,NAME]

writes recorded/shell/summary.json.gz (not with --only) and prints the table of docs/studies/validation.md.
Each of CASES is one queue with one stream of 1500-byte IP packets at constant spacing into a link of 12 Mbit/s.
mm-link runs as an unprivileged user in a network namespace made for it, our shell with both ends apart from the
machine. The other words (`send`, `sink`, `surround`) are what this file runs inside and around the shells.

RECORD_SHELL is the command of our shell, by default `python -m ccgym.cli.main shell`.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import pwd
import re
import shlex
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

import machine

HERE = pathlib.Path(__file__).resolve()
ROOT = HERE.parents[3]
SUMMARY = machine.RECORDED / "shell" / "summary.json.gz"
PORT = 47003
IP_BYTES, UNIT = 1500, 1504  # mahimahi counts 4 bytes more per packet
HEADERS = 28
LINK_MBPS = 12.0
TRACE_MS = [1]  # one opportunity per ms
START_S = 1.4  # until the first packet: a batch begins together, when all its programs have started
SETTLE_S = 0.1  # at least, from the sender's start to its first packet
DRAIN_S = 0.25  # beyond what the queue holds at the end
LIMIT_S = 60
DISTURBED_MS = 3.0  # a stream that arrives less regularly than this is sent again
ATTEMPTS = 6
OURS, THEIRS = "ccgym shell", "mm-link"


@dataclass(frozen=True)
class Case:
    """A queue, and a stream that overloads it."""

    name: str
    queue: str
    arguments: str
    mbps: float
    seconds: float = 2.0
    drain_s: float = 0.0  # what the queue may hold at the end
    chance: bool = False  # whether drops are drawn by chance: from a seed in our shell, from none in mm-link

    @property
    def gap_ns(self) -> int:
        return round(IP_BYTES * 8e3 / self.mbps)

    @property
    def packets(self) -> int:
        return int(self.seconds * 1e9 / self.gap_ns)

    def words(self, log: str) -> list[str]:
        words = ["mm-link", "trace", "trace", f"--uplink-log={log}"]
        if self.queue != "infinite":
            words += [f"--uplink-queue={self.queue}", f"--uplink-queue-args={self.arguments}"]
        return words


CASES = (
    Case("infinite", "infinite", "", 14, drain_s=0.4),
    Case("droptail packets", "droptail", "packets=10", 14),
    Case("droptail bytes", "droptail", "bytes=9000", 14),
    Case("drophead", "drophead", "packets=10", 14),
    Case("codel", "codel", "packets=1000, target=5, interval=20", 14, drain_s=0.2),
    Case("pie", "pie", "packets=200, qdelay_ref=20, max_burst=100", 14, drain_s=0.2, chance=True),
)


# --- Inside and around the shells ---------------------------------------------------------------------------------


def send(host: str, start_ns: int, gap_ns: int, packets: int, drain_s: float, folder: pathlib.Path) -> None:
    """Send at constant spacing by absolute times, then rest until the queue is empty."""
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    out.connect((host, PORT))
    payload = bytes(IP_BYTES - HEADERS)
    start = max(start_ns, time.monotonic_ns() + int(SETTLE_S * 1e9))
    late_ns = []
    for i in range(packets):
        due = start + i * gap_ns
        left = due - time.monotonic_ns()
        if left > 0:
            time.sleep(left / 1e9)
        late_ns.append(time.monotonic_ns() - due)
        out.send(payload)
    (folder / "sent").write_text(
        json.dumps(
            {
                "packets": packets,
                "lateness_mean_us": round(statistics.fmean(late_ns) / 1e3, 1),
                "lateness_max_us": round(max(late_ns) / 1e3, 1),
            }
        )
    )
    time.sleep(drain_s + DRAIN_S)


def sink() -> None:
    """Take in what arrives: without a listener each packet would earn an ICMP error."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listener.bind(("0.0.0.0", PORT))
    while True:
        listener.recv(2048)


def surround(folder: pathlib.Path, words: list[str], sender: list[str]) -> int:
    """Run mm-link in this namespace, which is new and empty, and the sender inside of it.

    The sender enters from here: the user of mm-link need not reach this interpreter. IPv6 is turned off inside before
    the stream begins. Without that, router solicitations and multicast reports arrive in between: behind such a small
    packet each full one straddles two opportunities and leaves a millisecond later, until the queue is empty.
    """
    machine.become_root_for_iptables(folder)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    pathlib.Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    threading.Thread(target=sink, daemon=True).start()
    inner = ["sh", "-c", "echo $$ $MAHIMAHI_BASE > ready; exec cat"]  # until its input ends
    if machine.USER not in {account.pw_name for account in pwd.getpwall()}:
        machine.USER = "nobody"
    as_user = machine.as_user(*words, "--", *inner)
    shells = subprocess.Popen(as_user[as_user.index("setpriv") :], cwd=folder, stdin=subprocess.PIPE)
    ready = folder / "ready"
    while not (ready.exists() and ready.read_text().endswith("\n")):
        if shells.poll() is not None:
            return shells.returncode or 1
        time.sleep(0.01)
    process, base = ready.read_text().split()
    enter = ["nsenter", f"--target={process}", "--net"]
    subprocess.run([*enter, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1"], check=True)
    subprocess.run([*enter, *sender], check=True, env={**os.environ, "MAHIMAHI_BASE": base})
    shells.communicate()
    return shells.returncode


# --- Runs ---------------------------------------------------------------------------------------------------------


def with_drops(text: str) -> str:
    """A log of ours with drops as lines, as mahimahi's master writes them, instead of as comments."""
    return re.sub(r"^# (?=\d+ d )", "", text, flags=re.MULTILINE)


@dataclass(frozen=True)
class Log:
    """The uplink log of a run, full-size packets only."""

    lines: tuple[tuple[str, ...], ...]  # words of each line that is no comment
    base_ms: int
    seed: int | None
    sent: dict

    @classmethod
    def read(cls, text: str, sent: dict) -> Log:
        lines = [line.split() for line in with_drops(text).splitlines()]
        header = {words[1]: words[-1] for words in lines if words[0] == "#" and len(words) > 2}
        seed = header.get("seed:")
        return cls(
            tuple(tuple(words) for words in lines if words[0] != "#"),
            int(header["base"]),
            None if seed is None else int(seed),
            sent,
        )

    def of_kind(self, kind: str) -> list[tuple[str, ...]]:
        return [words for words in self.lines if words[1] == kind]

    @property
    def arrivals_ms(self) -> list[int]:
        return [int(words[0]) - self.base_ms for words in self.of_kind("+") if int(words[2]) == UNIT]

    @property
    def delays_ms(self) -> list[int]:
        return [int(words[3]) for words in self.of_kind("-") if int(words[2]) == UNIT]

    @property
    def drops(self) -> int:
        """Arrivals without a departure: release 0.98 of mm-link writes no line for a drop."""
        return len(self.arrivals_ms) - len(self.delays_ms)

    @property
    def strays(self) -> int:
        """Packets of other sizes since the stream began: they disturb how full ones fit into opportunities."""
        sizes = [int(words[2]) for words in self.of_kind("+")]
        return sum(size != UNIT for size in sizes[sizes.index(UNIT) :])

    def jitter_ms(self, case: Case) -> float:
        """How far arrivals stray from constant spacing, first to last; up to 1 ms of it is the log's resolution."""
        off = [ms - i * case.gap_ns / 1e6 for i, ms in enumerate(self.arrivals_ms)]
        return max(off) - min(off)

    def undisturbed(self, case: Case, allowed_ms: float = DISTURBED_MS) -> bool:
        """Whether what arrived was the stream that was meant."""
        return len(self.arrivals_ms) == case.packets and not self.strays and self.jitter_ms(case) <= allowed_ms

    def summary(self, case: Case) -> dict:
        return {
            "arrivals": len(self.arrivals_ms),
            "drops": self.drops,
            **delay_figures(self.delays_ms),
            "arrival_jitter_ms": round(self.jitter_ms(case), 2),
            "lateness_mean_us": self.sent["lateness_mean_us"],
            "lateness_max_us": self.sent["lateness_max_us"],
        }


def delay_figures(delays_ms: Sequence[int]) -> dict:
    ordered = sorted(delays_ms)
    return {
        "delay_mean_ms": round(statistics.fmean(ordered), 3),
        "delay_p95_ms": ordered[math.ceil(0.95 * len(ordered)) - 1],
        "delay_max_ms": ordered[-1],
    }


def our_shell() -> list[str]:
    given = os.environ.get("RECORD_SHELL")
    return shlex.split(given) if given else [sys.executable, "-m", "ccgym.cli.main", "shell"]


def command(case: Case, shell: str, seed: int, folder: pathlib.Path, start_ns: int) -> list[str]:
    """What is run: the sender inside the shell, a sink outside, both this file."""
    me = [sys.executable, str(HERE)]
    numbers = (start_ns, case.gap_ns, case.packets, case.drain_s)
    sender = [*me, "send", *map(str, numbers), str(folder)]
    priority = machine.prioritized() if machine.real_time() else []
    if shell == OURS:
        apart = ["--isolated"] if os.geteuid() == 0 else []
        words = [*our_shell(), f"--seed={seed}", *apart, f"--outside={shlex.join([*me, 'sink'])}"]
        return [*priority, *words, f"--outside-port={PORT}", "--", *case.words("uplink.log"), "--", *sender]
    around = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", *priority]
    return [*around, *me, "surround", str(folder), *case.words("uplink.log"), "--", *sender]


class ShellFailed(RuntimeError):
    """A shell did not run; the message has what it said."""


def run(case: Case, shell: str, seed: int, start_ns: int = 0) -> Log:
    """One run of one shell."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="shell-"))
    os.chmod(folder, 0o777)
    (folder / "trace").write_text("".join(f"{ms}\n" for ms in TRACE_MS))
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command(case, shell, seed, folder, start_ns), cwd=folder, env=environment, timeout=LIMIT_S,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0 or not (folder / "sent").exists():
            raise ShellFailed(f"{shell}, {case.name}: exit status {done.returncode}: {done.stderr.strip()}")
        return Log.read((folder / "uplink.log").read_text(), json.loads((folder / "sent").read_text()))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_all(jobs: Sequence[tuple[Case, str, int]], at_once: int, allowed_ms: float = DISTURBED_MS) -> list[Log]:
    """All jobs, in batches whose streams begin together: programs that start would disturb streams under way.

    Those whose streams the machine disturbed are repeated some times; the last may still be disturbed.
    """
    logs: dict[int, Log] = {}
    for _ in range(ATTEMPTS):
        left = [i for i, (case, *_) in enumerate(jobs) if i not in logs or not logs[i].undisturbed(case, allowed_ms)]
        for first in range(0, len(left), at_once):
            batch = left[first : first + at_once]
            start_ns = time.monotonic_ns() + int(START_S * 1e9)
            with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
                begun = [pool.submit(run, *jobs[i], start_ns) for i in batch]
            logs.update((i, one.result()) for i, one in zip(batch, begun))
    return [logs[i] for i in range(len(jobs))]


# --- The recording ------------------------------------------------------------------------------------------------

VERSION = "from ccgym import _core; print(_core.__version__)"
CHANCE_TIMES = 6  # queues that draw are run more often
MEASURES = ("drops", "delay_mean_ms", "delay_p95_ms", "delay_max_ms")


def table(cases: Sequence[dict]) -> str:
    """The table of docs/studies/validation.md: means over the repetitions, with the range where it is not a point."""

    def cell(runs: Sequence[dict], measure: str) -> str:
        values = [one[measure] for one in runs]
        low, high = min(values), max(values)
        mean = f"{statistics.fmean(values):.{2 if measure == 'delay_mean_ms' else 1}f}".removesuffix(".0")
        return mean if low == high else f"{mean} ({low:g} to {high:g})"

    lines = [
        "| queue | arguments | Mbit/s | shell | drops | mean delay ms | p95 ms | max ms |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for case in cases:
        for shell in (THEIRS, OURS):
            cells = " | ".join(cell(case["runs"][shell], measure) for measure in MEASURES)
            begin = f"{case['queue']} | {case['arguments']} | {case['mbps']:g}" if shell == THEIRS else " | | "
            lines.append(f"| {begin} | {shell} | {cells} |")
    return "\n".join(lines)


def record(repeat: int, only: set[str], at_once: int) -> dict:
    load = machine.load()
    cases = []
    for case in CASES:
        if only and case.name not in only:
            continue
        seeds = range(1, repeat * (CHANCE_TIMES if case.chance else 1) + 1)
        jobs = [(case, shell, seed) for seed in seeds for shell in (THEIRS, OURS)]  # alternating
        logs = run_all(jobs, at_once)
        runs = {shell: [log.summary(case) for job, log in zip(jobs, logs) if job[1] == shell and log.undisturbed(case)]
                for shell in (THEIRS, OURS)}  # fmt: skip
        commands = {shell: shlex.join(command(case, shell, 1, pathlib.Path("FOLDER"), 0)) for shell in (THEIRS, OURS)}
        shown = {name: text.replace(str(HERE), HERE.name).replace(sys.executable, "python")
                 for name, text in commands.items()}  # fmt: skip
        cases.append(
            {
                "name": case.name,
                "queue": case.queue,
                "arguments": case.arguments,
                "mbps": case.mbps,
                "gap_ns": case.gap_ns,
                "packets": case.packets,
                "commands": shown,
                "runs": runs,
                "left_out_as_disturbed": len(jobs) - sum(map(len, runs.values())),
            }
        )
        print(case.name, {name: [one["drops"] for one in of] for name, of in runs.items()}, flush=True)
    return {
        "about": "the same stream through mm-link and through our shell: uplink logs, full-size packets",
        "ip_bytes": IP_BYTES,
        "trace_ms": TRACE_MS,
        "link_mbps": LINK_MBPS,
        "at_once": at_once,
        "load_average": load,
        "machine": machine.describe(),
        "ccgym": machine.output_of(
            "sh", "-c", 'cd "$1" && exec "$2" -c "$3"', "sh", str(ROOT), sys.executable, VERSION
        ),
        "cases": cases,
    }


def main() -> None:
    words = sys.argv[1:]
    if words[:1] == ["sink"]:
        return sink()
    if words[:1] == ["surround"]:
        split = words.index("--")
        sys.exit(surround(pathlib.Path(words[1]), words[2:split], words[split + 1 :]))
    if words[:1] == ["send"]:
        *whole, drain_s, folder = words[1:]
        start_ns, gap_ns, packets = map(int, whole)
        return send(os.environ["MAHIMAHI_BASE"], start_ns, gap_ns, packets, float(drain_s), pathlib.Path(folder))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    machine.require_root()
    only = set(filter(None, options.only.split(",")))
    summary = record(options.repeat, only, options.at_once)
    if not only:
        SUMMARY.parent.mkdir(parents=True, exist_ok=True)
        machine.write_gzip(SUMMARY, json.dumps(summary, indent=1) + "\n")
    print(table(summary["cases"]))


if __name__ == "__main__":
    main()
