#!/usr/bin/env python3
"""Run kernel TCP through real mahimahi and capture both ends of the path.

  record_kernel_tcp.py PATH WORK_DIR [--runs N] [--schemes cubic,reno,bbr] [--first-run K]

PATH is a name in PATHS below.  Each run leaves in WORK_DIR/PATH/SCHEME_runK:
inner.pcap (the sender's device, inside the innermost shell), outer.pcap (the
outermost device, at the receiver), uplink.log, tcp_info.csv, run.json.
analyze_kernel_tcp.py reduces them to recorded/kernel_tcp.
"""

import argparse
import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time

import machine
import make_trace

PORT = 47001
HERE = pathlib.Path(__file__).resolve().parent
BULK = pathlib.Path(os.environ.get("BUILD", HERE / "build")) / "bulk"

PATHS = {
    "77.72mbps": {
        "trace_file": "77.72mbps.trace",
        "trace": make_trace.constant_rate(77.72),
        "trace_generator": "make_trace.py constant 77.72",
        "outer": ["mm-delay", "51", "mm-loss", "uplink", "0.0006"],
        "link_arguments": ["--uplink-queue=droptail", "--uplink-queue-args=packets=94"],
        "one_way_delay_ms": 51,
        "seconds": 30,
    },
    "12mbps": {
        "trace_file": "12mbps.trace",
        "trace": make_trace.all_ones(1),
        "trace_generator": "make_trace.py ones 1",
        "outer": ["mm-delay", "20"],
        "link_arguments": ["--uplink-queue=droptail", "--uplink-queue-args=packets=40"],
        "one_way_delay_ms": 20,
        "seconds": 15,
    },
}

# Pantheon's own preparation of a host: 16 MB default, 512 MB maximum.  The
# metrics cache is off so that no run inherits ssthresh or RTT from another.
SYSCTLS_HOST = {
    "net.ipv4.ip_forward": "1",
    "net.core.rmem_default": "16777216",
    "net.core.rmem_max": "536870912",
    "net.core.wmem_default": "16777216",
    "net.core.wmem_max": "536870912",
    "net.ipv4.tcp_allowed_congestion_control": "reno bbr cubic",
}
SYSCTLS_BOTH_NAMESPACES = {
    "net.ipv4.tcp_rmem": "4096 16777216 536870912",
    "net.ipv4.tcp_wmem": "4096 16777216 536870912",
    "net.ipv4.tcp_no_metrics_save": "1",
}


def set_sysctls(values: dict[str, str], prefix: tuple[str, ...] = ()) -> None:
    for name, value in values.items():
        subprocess.run([*prefix, "sysctl", "-qw", f"{name}={value}"], check=True)


def tcp_settings(prefix: tuple[str, ...] = ()) -> dict[str, str]:
    text = machine.output_of(*prefix, "sysctl", "-a", "--pattern", r"^net\.(ipv4\.tcp_|core\.(default_qdisc|[rw]mem_))")
    pairs = (line.split(" = ", 1) for line in text.splitlines() if " = " in line)
    return {name: value for name, value in pairs if "fastopen_key" not in name}


def cubic_parameters() -> dict[str, str]:
    folder = pathlib.Path("/sys/module/tcp_cubic/parameters")
    return {file.name: file.read_text().strip() for file in sorted(folder.iterdir())}


def wait_for(file: pathlib.Path, patience_s: float = 20.0) -> str:
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        if file.exists() and file.read_text().endswith("\n"):
            return file.read_text().strip()
        time.sleep(0.02)
    raise TimeoutError(f"{file} did not appear")


def start_capture(prefix: tuple[str, ...], device: str, target: pathlib.Path) -> subprocess.Popen:
    arguments = ["-Z", "root", "-p", "-n", "-i", device, "-s", "84", "-B", "65536", "-w", str(target)]
    with open(target.with_suffix(".tcpdump"), "w") as report:
        return subprocess.Popen(
            [*machine.prioritized(*prefix, "tcpdump", below=10), *arguments, "tcp", "port", str(PORT)], stderr=report
        )


def stop(process: subprocess.Popen) -> None:
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def outermost_device(base_address: str) -> str:
    for line in machine.output_of("ip", "-o", "-4", "address").splitlines():
        fields = line.split()
        if fields[3].split("/")[0] == base_address:
            return fields[1]
    raise LookupError(f"no device has {base_address}")


def run_once(path_name: str, scheme: str, number: int, folder: pathlib.Path) -> None:
    path = PATHS[path_name]
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    os.chmod(folder, 0o777)
    trace = folder.parent / path["trace_file"]
    ready, go, drained, captured = (folder / name for name in ("ready", "go", "drained", "captured"))
    inner_script = (
        f"echo $$ $MAHIMAHI_BASE > {ready}; while [ ! -e {go} ]; do sleep 0.05; done; "
        f"{BULK} send $MAHIMAHI_BASE {PORT} {scheme} {path['seconds']} {folder}/tcp_info.csv; "
        f"echo done > {drained}; while [ ! -e {captured} ]; do sleep 0.05; done"
    )
    shells = [
        *path["outer"], "mm-link", str(trace), str(trace), f"--uplink-log={folder}/uplink.log",
        *path["link_arguments"],
    ]  # fmt: skip
    with open(folder / "received", "w") as received:
        receiver = subprocess.Popen(machine.prioritized(str(BULK), "receive", str(PORT)), stdout=received)
    shell = subprocess.Popen(machine.as_user(*shells, "--", "sh", "-c", inner_script))
    captures = []
    try:
        pid, base = wait_for(ready).split()
        inside = ("nsenter", "-t", pid, "-n")
        set_sysctls(SYSCTLS_BOTH_NAMESPACES, inside)
        settings_inside = tcp_settings(inside)
        features = machine.output_of(*inside, "ethtool", "-k", "ingress").splitlines()
        queueing = machine.output_of(*inside, "tc", "qdisc", "show", "dev", "ingress")
        captures = [
            start_capture(inside, "ingress", folder / "inner.pcap"),
            start_capture((), outermost_device(base), folder / "outer.pcap"),
        ]
        time.sleep(1.0)
        load_before = machine.load()
        go.touch()
        wait_for(drained, path["seconds"] + 30)
        time.sleep(1.5)  # tcpdump reads a block of packets once a second at the latest
        while captures:  # before the devices go away, or what is still unread is lost
            stop(captures.pop())
        captured.touch()
        shell.wait(10)
        receiver.wait(5)
    finally:
        for capture in captures:
            stop(capture)
        go.touch()
        captured.touch()
        for process in (shell, receiver):
            if process.poll() is None:
                process.terminate()
                process.wait()
    shown = [part.replace(f"{folder.parent}/", "").replace(f"{folder}/", "") for part in shells]
    shown = [part.replace(f"{folder.name}/", "") for part in shown]
    record = {
        "path": path_name,
        "scheme": scheme,
        "run": number,
        "command": f"{shlex.join(shown)} -- bulk send $MAHIMAHI_BASE {PORT} {scheme} {path['seconds']} tcp_info.csv",
        "one_way_delay_ms": path["one_way_delay_ms"],
        "seconds": path["seconds"],
        "bytes_read_by_receiver": int((folder / "received").read_text() or 0),
        "load_average_before": load_before,
        "load_average_after": machine.load(),
        "machine": machine.describe(),
        "trace_generator": path["trace_generator"],
        "sysctl_sender_namespace": settings_inside,
        "sysctl_receiver_namespace": tcp_settings(),
        "tcp_cubic_parameters": cubic_parameters(),
        "sender_device_qdisc": queueing,
        "sender_device_offloads": [
            line.strip() for line in features
            if line.startswith(("tcp-seg", "generic-", "tx-checksumming", "scatter-gather", "large-"))
        ],
        "tcpdump": {
            name: (folder / f"{name}.tcpdump").read_text().strip().splitlines()[-3:] for name in ("inner", "outer")
        },
    }  # fmt: skip
    (folder / "run.json").write_text(json.dumps(record, indent=1))
    for mark in (ready, go, drained, captured):
        mark.unlink()
    print(path_name, scheme, number, record["bytes_read_by_receiver"] * 8e-6 / path["seconds"], "Mbit/s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", choices=PATHS)
    parser.add_argument("work_dir", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--first-run", type=int, default=1)
    parser.add_argument("--schemes", default="bbr,cubic,reno")
    options = parser.parse_args()
    machine.require_root()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that a stopped recording cleans up
    set_sysctls(SYSCTLS_HOST | SYSCTLS_BOTH_NAMESPACES)
    folder = options.work_dir / options.path
    folder.mkdir(parents=True, exist_ok=True)
    path = PATHS[options.path]
    (folder / path["trace_file"]).write_text("".join(f"{line}\n" for line in path["trace"]))
    for number in range(options.first_run, options.first_run + options.runs):
        for scheme in options.schemes.split(","):
            run_once(options.path, scheme, number, folder / f"{scheme}_run{number}")


if __name__ == "__main__":
    main()
