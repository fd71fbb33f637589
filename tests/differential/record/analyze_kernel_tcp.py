#!/usr/bin/env python3
"""Reduce the captures of record_kernel_tcp.py.

  analyze_kernel_tcp.py WORK_DIR PATH... [--without-examples PATH,...]

Writes into recorded/kernel_tcp: summary.csv (a row per run), PATH.json.gz (conditions
once, every run in detail), losses_PATH.csv.gz (every lost packet of every run),
tcp_info_PATH_SCHEME.csv.gz and packets_PATH_SCHEME.csv.gz (one run per scheme); Git
keeps none of these .csv.gz files.  The definitions are in README.md.
"""

import argparse
import csv
import io
import json
import pathlib
import statistics
import struct
from collections import Counter
from dataclasses import dataclass

import machine

PORT = 47001
BIN_S = 0.5
BURST_GAP_S = 100e-6
PACKETS_KEPT_S = 3.0
OUT = machine.RECORDED / "kernel_tcp"
NO_SSTHRESH = -1
SYN, RST = 0x02, 0x04


@dataclass(slots=True)
class Packet:
    time: float
    size: int  # IP length
    ip_id: int
    from_sender: bool
    seq: int
    ack: int
    flags: int
    payload: int

    @property
    def key(self) -> tuple[int, int, int]:
        return self.ip_id, self.seq, self.size


def read_capture(file: pathlib.Path) -> list[Packet]:
    """Packets of a raw-IP pcap file with microsecond time stamps, in order."""
    data = file.read_bytes()
    magic, link_type = struct.unpack_from("<I16xI", data, 0)
    if magic != 0xA1B2C3D4 or link_type not in (101, 228):
        raise ValueError(f"{file}: not a little-endian raw-IP capture (link type {link_type})")
    packets, at = [], 24
    while at + 16 <= len(data):
        seconds, micros, kept, _ = struct.unpack_from("<IIII", data, at)
        ip = at + 16
        at = ip + kept
        if at > len(data):
            break
        header = (data[ip] & 15) * 4
        size, ip_id = struct.unpack_from(">HH", data, ip + 2)
        tcp = ip + header
        _, to_port, seq, ack, offset, flags = struct.unpack_from(">HHIIBB", data, tcp)
        packets.append(
            Packet(seconds + micros * 1e-6, size, ip_id, to_port == PORT, seq, ack, flags,
                   size - header - (offset >> 4) * 4)
        )  # fmt: skip
    return packets


def nearest_percentile(values: list[float], fraction: float) -> float:
    """Pantheon's: element fraction * (n - 1), rounded half to even, of the sorted values."""
    ordered = sorted(values)
    return ordered[round(fraction * (len(ordered) - 1))]


def rounded_percentiles(values: list[float], fractions: dict[str, float]) -> dict[str, float]:
    return {name: round(nearest_percentile(values, fraction), 3) for name, fraction in fractions.items()}


def mbps(packets: list[Packet]) -> float:
    span = packets[-1].time - packets[0].time
    return sum(p.size for p in packets) * 8e-6 / span if span else 0.0


def burst_sizes(packets: list[Packet]) -> Counter:
    sizes, length = Counter(), 0
    last = None
    for packet in packets:
        if last is not None and packet.time - last >= BURST_GAP_S:
            sizes[length] += 1
            length = 0
        length += 1
        last = packet.time
    if length:
        sizes[length] += 1
    return sizes


def describe_bursts(packets: list[Packet]) -> dict:
    """Runs of packets less than 100 us apart; the percentile is over packets."""
    sizes = burst_sizes(packets)
    per_packet = sorted(size for size, count in sizes.items() for _ in range(size * count))
    if not per_packet:
        return {}
    return {
        "bursts": sum(sizes.values()),
        "mean": round(len(per_packet) / sum(sizes.values()), 2),
        "p50_over_packets": per_packet[len(per_packet) // 2],
        "p95_over_packets": per_packet[int(0.95 * len(per_packet))],
        "largest": per_packet[-1],
        "histogram": {str(size): sizes[size] for size in sorted(sizes) if size <= 64},
    }


def describe_acks(outer: list[Packet], until: float | None) -> dict:
    """Pure ACKs as they leave the receiver, optionally only those before a time."""
    acks = [p for p in outer if not p.from_sender and not p.flags & (SYN | RST) and (until is None or p.time < until)]
    data = [p for p in outer if p.from_sender and p.payload and (until is None or p.time < until)]
    advances, duplicates = Counter(), 0
    mss = max((p.payload for p in data), default=1448)
    for before, after in zip(acks, acks[1:]):
        step = (after.ack - before.ack) & 0xFFFFFFFF
        if step == 0 or step > 1 << 31:
            duplicates += 1
        else:
            advances[round(step / mss, 1)] += 1
    return {
        "data_packets_received": len(data),
        "acks_sent": len(acks),
        "data_packets_per_ack": round(len(data) / len(acks), 3) if acks else None,
        "acks_not_advancing": duplicates,
        "advance_in_segments": {str(k): n for k, n in sorted(advances.items(), key=lambda item: -item[1])[:12]},
    }


def ack_response_ms(outer: list[Packet]) -> dict:
    """From the arrival of a data packet to the next packet the receiver sends."""
    waits, pending = [], None
    for packet in outer:
        if packet.from_sender:
            if packet.payload and pending is None:
                pending = packet.time
        elif pending is not None:
            waits.append((packet.time - pending) * 1e3)
            pending = None
    if not waits:
        return {}
    return rounded_percentiles(waits, {"p50": 0.5, "p95": 0.95, "max": 1})


def describe_lumps(left: list[Packet]) -> dict:
    """Groups of arrivals less than 0.2 ms apart: what one wake-up of the last shell lets go."""
    starts, last = [], None
    for packet in left:
        if last is None or packet.time - last > 2e-4:
            starts.append(packet.time)
        last = packet.time
    gaps = [(b - a) * 1e3 for a, b in zip(starts, starts[1:])]
    return {
        "packets_per_lump": round(len(left) / len(starts), 3),
        "gap_ms": rounded_percentiles(gaps, {"p5": 0.05, "p50": 0.5, "p95": 0.95}),
        "share_of_gaps_over_2ms": round(sum(g > 2 for g in gaps) / len(gaps), 5),
    }


@dataclass
class LinkLog:
    init_s: float
    arrivals: int
    departures: int
    drops_by_ms: list[tuple[int, int]]
    p95_queueing_ms: int
    opportunities: int


def read_link_log(file: pathlib.Path) -> LinkLog:
    """Full-size units only, so IPv6 chatter and pure ACKs do not count."""
    arrived, left, queueing, opportunities, init_ms = Counter(), Counter(), [], 0, 0
    for line in file.read_text().splitlines():
        if line.startswith("#"):
            if line.startswith("# init timestamp:"):
                init_ms = int(line.split()[-1])
            continue
        fields = line.split()
        match fields[1]:
            case "#":
                opportunities += 1
            case "+" if int(fields[2]) > 200:
                arrived[int(fields[0])] += 1
            case "-" if int(fields[2]) > 200:
                left[int(fields[0]) - int(fields[3])] += 1
                queueing.append(int(fields[3]))
    drops = [(ms, arrived[ms] - left[ms]) for ms in sorted(arrived) if arrived[ms] != left[ms]]
    return LinkLog(
        init_ms / 1e3, arrived.total(), left.total(), drops, nearest_percentile(queueing, 0.95), opportunities
    )


def read_tcp_info(file: pathlib.Path) -> list[dict[str, float]]:
    with file.open() as text:
        text.readline()  # the start, as seconds since the epoch
        return [{k: float(v) for k, v in row.items()} for row in csv.DictReader(text)]


def start_up(rows: list[dict[str, float]]) -> dict:
    """When slow start ended and by what, to the 20 ms of the samples."""
    facts: dict = {}
    for before, row in zip(rows, rows[1:]):
        moment = {
            "t_s": round(row["t_s"], 3),
            "cwnd_before": int(before["cwnd"]),
            "cwnd_after": int(row["cwnd"]),
            "ca_state": int(row["ca_state"]),
        }
        if row["ssthresh"] != NO_SSTHRESH and "first_ssthresh" not in facts:
            rtts = {"srtt_ms": row["srtt_us"] / 1e3, "min_rtt_ms": row["min_rtt_us"] / 1e3}
            facts["first_ssthresh"] = {**moment, "ssthresh": int(row["ssthresh"]), **rtts}
        if row["ca_state"] >= 3 and "first_recovery" not in facts:
            facts["first_recovery"] = moment
    facts["largest_cwnd"] = int(max(row["cwnd"] for row in rows))
    facts["timeouts_seen"] = sum(1 for a, b in zip(rows, rows[1:]) if b["ca_state"] == 4 != a["ca_state"])
    facts["recoveries_seen"] = sum(1 for a, b in zip(rows, rows[1:]) if b["ca_state"] == 3 != a["ca_state"])
    if "bbr_pacing_gain" in rows[0]:
        full = next((r for r in rows if 0 < r["bbr_pacing_gain"] < 1), None)
        facts["first_drain_t_s"] = round(full["t_s"], 3) if full else None
    return facts


def binned(packets: list[Packet], origin: float, seconds: float) -> list[float]:
    bits = [0.0] * round(seconds / BIN_S)
    for packet in packets:
        index = int((packet.time - origin) / BIN_S)
        if 0 <= index < len(bits):
            bits[index] += packet.size * 8
    return [round(b / BIN_S / 1e6, 3) for b in bits]


def name_losses(entered: list[Packet], arrived: set, log: LinkLog) -> list[tuple[int, float, str]]:
    """(index among the sender's packets, time of entry, queue or random) of each lost packet.

    The log gives only how many units of a millisecond did not depart, and its
    arrival stamp may be a millisecond or two after the capture's, so beside a run
    of queue drops the attribution of a single packet is a guess; the totals are not.
    """
    drops = [ms for ms, count in log.drops_by_ms for _ in range(count)]
    named, upcoming, origin = [], 0, entered[0].time
    for index, packet in enumerate(entered):
        if packet.key in arrived:
            continue
        at = int((packet.time - log.init_s) * 1e3)
        while upcoming < len(drops) and drops[upcoming] < at - 1:
            upcoming += 1
        in_queue = upcoming < len(drops) and drops[upcoming] <= at + 3
        upcoming += in_queue
        named.append((index, packet.time - origin, "queue" if in_queue else "random"))
    return named


def analyze(folder: pathlib.Path) -> tuple[dict, dict, list[list], list[tuple[int, float, str]]]:
    """(conditions, result, packet rows, losses) of one run."""
    run = json.loads((folder / "run.json").read_text())
    inner, outer = read_capture(folder / "inner.pcap"), read_capture(folder / "outer.pcap")
    entered = [p for p in inner if p.from_sender and not p.flags & RST]
    left = [p for p in outer if p.from_sender and not p.flags & RST]
    arrival_of = {p.key: p.time for p in left}
    if len(arrival_of) != len(left):
        raise ValueError(f"{folder}: {len(left) - len(arrival_of)} ambiguous packets")
    entry_of = {p.key: p.time for p in entered}
    delays = [(p.time - entry_of[p.key]) * 1e3 for p in left]
    origin, seconds = entered[0].time, run["seconds"]
    cut_entered = [p for p in entered if p.time <= origin + seconds]
    cut_left = [p for p in left if p.time <= origin + seconds]
    cut_delays = [(p.time - entry_of[p.key]) * 1e3 for p in cut_left]
    lost = [p for p in entered if p.key not in arrival_of]
    data = [p for p in entered if p.payload]
    log = read_link_log(folder / "uplink.log")
    queue_drops = log.arrivals - log.departures
    info = read_tcp_info(folder / "tcp_info.csv")
    first_queue_drop = log.init_s + log.drops_by_ms[0][0] / 1e3 - origin if log.drops_by_ms else None
    first_loss = lost[0].time if lost else None
    mean_delay = []
    for index in range(round(seconds / BIN_S)):
        low = origin + index * BIN_S
        inside = [d for p, d in zip(left, delays) if low <= p.time < low + BIN_S]
        mean_delay.append(round(statistics.fmean(inside), 3) if inside else None)
    early = [p for p in data if p.time < origin + 1.0]
    later = [p for p in data if p.time >= origin + 1.0]
    result = {
        "scheme": run["scheme"],
        "run": run["run"],
        "date_utc": run["machine"]["date_utc"],
        "throughput_mbps": round(mbps(left), 4),
        "ingress_mbps": round(mbps(entered), 4),
        "p95_owd_ms": round(nearest_percentile(delays, 0.95), 3),
        "loss": round(1 - sum(p.size for p in left) / sum(p.size for p in entered), 6),
        "pantheon_cut": {
            "throughput_mbps": round(mbps(cut_left), 4),
            "p95_owd_ms": round(nearest_percentile(cut_delays, 0.95), 3),
            "loss": round(1 - sum(p.size for p in cut_left) / sum(p.size for p in cut_entered), 6),
        },
        "duration_s": round(left[-1].time - left[0].time, 4),
        "owd_ms": rounded_percentiles(delays, {"min": 0, "p5": 0.05, "p50": 0.5, "p99": 0.99, "max": 1}),
        "mean_owd_ms": round(statistics.fmean(delays), 3),
        "mm_link_p95_queueing_ms": log.p95_queueing_ms,
        "data_packets_sent": len(data),
        "full_size_packets_sent": sum(1 for p in data if p.size == 1500),
        "packets_lost": len(lost),
        "queue_drops": queue_drops,
        "random_losses": len(lost) - queue_drops,
        "retransmits": int(info[-1]["total_retrans"]),
        "segment_payload_bytes": max(p.payload for p in data),
        "first_loss_s": round(first_loss - origin, 4) if lost else None,
        "first_queue_drop_s": round(first_queue_drop, 3) if first_queue_drop is not None else None,
        "data_packets_before_first_loss": sum(1 for p in data if first_loss is None or p.time < first_loss),
        "start_up": start_up(info),
        "rwnd_limited_us": int(info[-1]["rwnd_limited_us"]),
        "sndbuf_limited_us": int(info[-1]["sndbuf_limited_us"]),
        "acks_whole_run": describe_acks(outer, None),
        "acks_before_first_loss": describe_acks(outer, first_loss + run["one_way_delay_ms"] / 1e3 if lost else None),
        "lumps_at_receiver": describe_lumps(left),
        "acks_arriving_at_sender": sum(1 for p in inner if not p.from_sender),
        "ack_response_ms": ack_response_ms(outer),
        "bursts_first_second": describe_bursts(early),
        "bursts_later": describe_bursts(later),
        "load_average": [run["load_average_before"][0], run["load_average_after"][0]],
        "throughput_series_mbps": binned(left, origin, seconds),
        "mean_owd_series_ms": mean_delay,
    }
    rows = [
        [f"{p.time - origin:.6f}", p.size, (p.seq - entered[0].seq) & 0xFFFFFFFF,
         f"{(arrival_of[p.key] - p.time) * 1e3:.3f}" if p.key in arrival_of else ""]
        for p in entered if p.time < origin + PACKETS_KEPT_S
    ]  # fmt: skip
    return run, result, rows, name_losses(entered, set(arrival_of), log)


def keep_example(folder: pathlib.Path, path_name: str, scheme: str, rows: list[list]) -> None:
    machine.write_gzip(OUT / f"tcp_info_{path_name}_{scheme}.csv.gz", (folder / "tcp_info.csv").read_text())
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["entered_s", "ip_bytes", "relative_seq", "one_way_delay_ms"])
    writer.writerows(rows)
    machine.write_gzip(OUT / f"packets_{path_name}_{scheme}.csv.gz", text.getvalue())


SUMMARY = (
    "path", "scheme", "run", "throughput_mbps", "p95_owd_ms", "loss", "retransmits", "duration_s", "queue_drops",
    "random_losses", "data_packets_sent", "mean_owd_ms", "cut_throughput_mbps", "cut_p95_owd_ms", "cut_loss",
    "first_loss_s", "first_queue_drop_s", "data_packets_per_ack",
)  # fmt: skip


def summary_row(path_name: str, result: dict) -> list:
    flat = {
        **result,
        "path": path_name,
        **{f"cut_{k}": v for k, v in result["pantheon_cut"].items()},
        "data_packets_per_ack": result["acks_whole_run"]["data_packets_per_ack"],
    }
    return [flat[name] for name in SUMMARY]


PER_RUN = ("scheme", "run", "load_average_before", "load_average_after", "bytes_read_by_receiver", "tcpdump", "command")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work_dir", type=pathlib.Path)
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--without-examples", default="", help="paths whose per-packet files are not wanted")
    options = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    table = []
    for path_name in options.paths:
        conditions, results, losses = {}, [], ["scheme,run,packet_index,entered_s,cause\n"]
        folders = [f for f in (options.work_dir / path_name).iterdir() if (f / "run.json").exists()]
        for folder in sorted(folders, key=lambda f: (f.name.split("_")[0], int(f.name.rpartition("run")[2]))):
            run, result, rows, lost = analyze(folder)
            losses += [f"{run['scheme']},{run['run']},{index},{at:.6f},{cause}\n" for index, at, cause in lost]
            conditions = {k: v for k, v in run.items() if k not in PER_RUN}
            conditions["command"] = run["command"].replace(f" {run['scheme']} ", " SCHEME ")
            if result["run"] == 1 and path_name not in options.without_examples.split(","):
                keep_example(folder, path_name, result["scheme"], rows)
            results.append(result)
            table.append(summary_row(path_name, result))
            print(*table[-1], flush=True)
        machine.write_gzip(OUT / f"losses_{path_name}.csv.gz", "".join(losses))
        document = {"conditions": conditions, "runs": results}
        machine.write_gzip(OUT / f"{path_name}.json.gz", json.dumps(document, indent=1) + "\n")
    with open(OUT / "summary.csv", "w", newline="") as text:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(SUMMARY)
        writer.writerows(table)


if __name__ == "__main__":
    main()
