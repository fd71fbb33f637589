#!/usr/bin/env python3
"""Send a torrent over libtorrent's uTP through an emulated path, alone and next to kernel TCP, and record what it got.

  record_libtorrent.py --python PYTHON [--only NAME,NAME]

PYTHON is an interpreter that has the package libtorrent; this file runs under one that has ccgym. Each of CASES is one
run: a session inside `ccgym shell` seeds generated data over uTP alone to a session at the other end, which listens on
port 5001; a TCP flow, where there is one, goes to port 5002. Both ends are apart from the machine. From the shell's log
of packets recorded/libtorrent/NAME.json keeps, per flow and bin of time, bytes that arrived and the minimum, mean and
maximum one-way delay. Root is not needed. The other words (`torrent`, `seed`, `fetch`) are what this file runs before,
inside and outside of the shell.
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import shlex
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass

import machine

HERE = pathlib.Path(__file__).resolve()
RECORDED = machine.RECORDED / "libtorrent"
UTP_PORT, TCP_PORT = 5001, 5002
RATE_MBPS, DELAY_MS = 12.0, 20
BIN_MS = 500
DATA_BYTES = 192 << 20
PIECE = 256 << 10


@dataclass(frozen=True)
class Case:
    """A buffer, and who shares it from when on."""

    name: str
    buffer_ms: int
    seconds: int
    tcp: str = ""
    tcp_start_s: int = 15

    def path(self) -> dict:
        buffer = int(RATE_MBPS * 1e3 / 8 * self.buffer_ms)
        delay = {"kind": "delay", "delay": DELAY_MS * 1_000_000}
        rate = {"kind": "rate", "rate": int(RATE_MBPS * 1e6)}
        link = {"kind": "link", "schedule": rate, "queue": {"kind": "droptail", "limit": {"bytes": buffer}}}
        return {"uplink": [link, delay], "downlink": [delay]}


CASES = (
    Case("alone_200ms", 200, 60),
    Case("alone_50ms", 50, 60),
    Case("cubic_200ms", 200, 75, "cubic"),
    Case("reno_200ms", 200, 75, "reno"),
)


# ---- inside and outside of the shell, with libtorrent --------------------------------------------------------------


def session(port: int):
    import libtorrent as lt

    return lt.session({
        "listen_interfaces": f"0.0.0.0:{port}",
        "enable_dht": False, "enable_lsd": False, "enable_upnp": False, "enable_natpmp": False,
        "enable_outgoing_tcp": False, "enable_incoming_tcp": False,
        "mixed_mode_algorithm": 0, "allow_multiple_connections_per_ip": True,
        "out_enc_policy": 2, "in_enc_policy": 2,
        "send_buffer_watermark": 4 << 20, "max_out_request_queue": 1000, "whole_pieces_threshold": 0,
        "alert_mask": 0,
    })  # fmt: skip


def add(torrent: str, folder: str, port: int, seeding: bool):
    import libtorrent as lt

    ours = session(port)
    params = lt.add_torrent_params()
    params.ti = lt.torrent_info(torrent)
    params.save_path = folder
    if seeding:
        params.flags |= lt.torrent_flags.seed_mode
    params.flags &= ~(lt.torrent_flags.auto_managed | lt.torrent_flags.paused)
    return ours, ours.add_torrent(params)


def fetch(torrent: str, folder: str) -> None:
    """The other end: listens for uTP, and takes what TCP sends."""
    threading.Thread(target=sink, daemon=True).start()
    _ours, handle = add(torrent, folder, UTP_PORT, seeding=False)
    while True:
        time.sleep(5)
        print(f"{handle.status().total_payload_download >> 20} MiB from {handle.status().num_peers}", flush=True)


def sink() -> None:
    with socket.create_server(("0.0.0.0", TCP_PORT)) as server:
        connection, _ = server.accept()
        while connection.recv(1 << 20):
            pass


def seed(torrent: str, folder: str, address: str, seconds: int, tcp: str, tcp_start: int) -> None:
    if tcp:
        threading.Thread(target=send, args=(address, tcp, tcp_start), daemon=True).start()
    _ours, handle = add(torrent, folder, 6881, seeding=True)
    handle.connect_peer((address, UTP_PORT))
    time.sleep(seconds)
    print(f"sent {handle.status().total_payload_upload >> 20} MiB to {handle.status().num_peers}", flush=True)


def send(address: str, tcp: str, start: int) -> None:
    time.sleep(start)
    with socket.socket() as flow:
        flow.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, tcp.encode())
        flow.connect((address, TCP_PORT))
        while True:
            flow.sendall(bytes(1 << 16))


def make_torrent(folder: pathlib.Path) -> dict:
    """Data and its torrent; the version of libtorrent and what it says about uTP."""
    import libtorrent as lt

    (folder / "data").mkdir()
    with (folder / "data" / "file").open("wb") as file:
        for i in range(DATA_BYTES // PIECE):
            file.write(i.to_bytes(8, "big") * (PIECE // 8))
    files = lt.list_files(str(folder / "data" / "file"))
    torrent = lt.create_torrent(files, PIECE, lt.create_torrent.v1_only)
    lt.set_piece_hashes(torrent, str(folder / "data"))
    (folder / "t.torrent").write_bytes(lt.bencode(torrent.generate()))
    settings = session(0).get_settings()
    return {"libtorrent": lt.version, "settings": {k: v for k, v in settings.items() if k.startswith("utp_")}}


# ---- the recording ---------------------------------------------------------------------------------------------------


def bins(log: pathlib.Path, seconds: int) -> dict:
    """Per flow and bin of departure from the path: bytes, and minimum, mean and maximum one-way delay.

    A line of Pantheon's log is an arrival `T + BYTES FLOW` or a delivery `T - BYTES DELAY FLOW`, in milliseconds.
    """
    count = math.ceil(seconds * 1000 / BIN_MS)
    found: dict[str, list[list[float]]] = {}
    for line in log.read_text().splitlines():
        words = line.split()
        if line.startswith("#") or words[1] != "-":
            continue
        place = int(float(words[0]) // BIN_MS)
        if place < count:
            flow = found.setdefault(words[4], [[0, math.inf, 0.0, 0.0, 0] for _ in range(count)])
            entry, size, delay = flow[place], int(words[2]), float(words[3])
            entry[0] += size
            entry[1], entry[2], entry[3] = min(entry[1], delay), entry[2] + delay, max(entry[3], delay)
            entry[4] += 1
    names = {"1": "utp", "2": "tcp"}
    return {
        names.get(flow, flow): {
            "bytes": [int(b[0]) for b in entries],
            "packets": [int(b[4]) for b in entries],
            "min_delay_ms": [round(b[1], 2) if b[4] else None for b in entries],
            "mean_delay_ms": [round(b[2] / b[4], 2) if b[4] else None for b in entries],
            "max_delay_ms": [round(b[3], 2) if b[4] else None for b in entries],
        }
        for flow, entries in sorted(found.items())
    }


def record(case: Case, python: str) -> None:
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work)
        sender = json.loads(machine.output_of(python, str(HERE), "torrent", work))
        spec, log = folder / "path.json", folder / "datalink.log"
        spec.write_text(json.dumps(case.path()))
        (folder / "fetched").mkdir()
        words = [python, str(HERE), "fetch", str(folder / "t.torrent"), str(folder / "fetched")]
        inside = [python, str(HERE), "seed", str(folder / "t.torrent"), str(folder / "data"), "$MAHIMAHI_BASE"]
        inside += [str(case.seconds), case.tcp or "-", str(case.tcp_start_s)]
        command = [sys.executable, "-m", "ccgym.cli.main", "shell", "--isolated", "--spec", str(spec), "--flows", "2"]
        command += ["--datalink-log", str(log), "--outside", shlex.join(words), "--outside-port", str(UTP_PORT)]
        command += ["--summary", "--", "sh", "-c", " ".join(inside)]
        load = machine.load()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        print(done.stdout[-500:], done.stderr[-3000:], file=sys.stderr)
        if done.returncode:
            sys.exit(f"{case.name}: the shell ended with {done.returncode}")
        about = machine.describe()
        kept = ("date_utc", "kernel", "distribution", "cores")
        result = {
            "case": case.name,
            "command": f"record_libtorrent.py --only {case.name}",
            **sender,
            "machine": {key: about[key] for key in kept} | {"load_before": load, "load_after": machine.load()},
            "shell_summary": done.stderr.strip().splitlines()[-12:],
            "path": case.path(),
            "rate_mbps": RATE_MBPS, "delay_ms": DELAY_MS, "buffer_ms": case.buffer_ms,
            "seconds": case.seconds, "tcp": case.tcp, "tcp_start_s": case.tcp_start_s,
            "bin_ms": BIN_MS,
            "flows": bins(log, case.seconds),
        }  # fmt: skip
        RECORDED.mkdir(parents=True, exist_ok=True)
        (RECORDED / f"{case.name}.json").write_text(json.dumps(result) + "\n")


def main() -> None:
    match sys.argv[1:]:
        case ["torrent", folder]:
            print(json.dumps(make_torrent(pathlib.Path(folder))))
        case ["fetch", torrent, folder]:
            fetch(torrent, folder)
        case ["seed", torrent, folder, address, seconds, tcp, start]:
            seed(torrent, folder, address, int(seconds), tcp.strip("-"), int(start))
        case _:
            parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
            parser.add_argument("--python", required=True, help="an interpreter that has the package libtorrent")
            parser.add_argument("--only", default="", help="names of cases, separated by commas")
            options = parser.parse_args()
            only = [name for name in options.only.split(",") if name]
            for case in CASES:
                if not only or case.name in only:
                    record(case, options.python)


if __name__ == "__main__":
    main()
