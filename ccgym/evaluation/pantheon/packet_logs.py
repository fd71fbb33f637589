"""Write and check the packet logs of a run, in the formats of Pantheon and mahimahi."""

from __future__ import annotations

import gzip
import hashlib
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from ccgym.config.hosts import hosts_of
from ccgym.evaluation import pantheon
from ccgym.evaluation.pantheon.raw_logs import raw_log_file, raw_log_texts
from ccgym.evaluation.run import Run
from ccgym.evaluation.run_record import RunRecord
from ccgym.units import NS_PER_MS

Direction: TypeAlias = Literal["up", "down"]
"""``up``: data; ``down``: ACKs."""

_LEVEL: Final = 3
"""Compression level of logs: 36 MB of a run in 0.2 s."""

_WAYS: tuple[tuple[str, Literal["data", "ack"], Direction], ...] = (
    ("datalink", "data", "up"),
    ("acklink", "ack", "down"),
)


PACKED: Final = ".gz"
"""End of the names of compressed logs."""


def write_packet_logs(
    run: Run, record: RunRecord, directory: Path, *, raw: bool = False, pack: bool = False
) -> dict[str, dict[str, Any]]:
    """Write the packet logs of a run, and return their names, each with its fingerprint.

    Args:
        run: The run, with ACKs and link events recorded.
        record: Its record.
        directory: The directory to write to.
        raw: Whether to write the raw logs of the tunnel, too.
        pack: Whether to compress them to a tenth of their size; Pantheon's tools cannot read compressed logs.
    """
    native = record.native
    assert native is not None
    epoch_ms = record.started_epoch_s * 1e3
    ends_ms = _ends_ms(run, record, epoch_ms)
    compiled = run.path.compile()
    command = ["ccgym", run.path.name or "unnamed path"]
    written: dict[str, dict[str, Any]] = {}

    def write(name: str, writer: Callable[[Path], None]) -> None:
        partial = directory / f".{name}.partial"
        writer(partial)
        if pack:
            name += PACKED
            plain, partial = partial, directory / f".{name}.partial"
            with plain.open("rb") as source, gzip.open(partial, "wb", _LEVEL) as target:
                shutil.copyfileobj(source, target, 1 << 20)
            plain.unlink()
        partial.replace(directory / name)
        written[name] = fingerprint(directory / name)

    for link, packets, direction in _WAYS:
        write(
            pantheon.tunnel_log_file(run.contender.key, run.number, link),
            lambda file, packets=packets: native.write_tunnel_log(file, packets, epoch_ms),  # type: ignore[misc]
        )
        name = pantheon.mm_log_file(run.contender.key, run.number, link)
        header = mm_log_header(compiled.uplink, compiled.downlink, direction, epoch_ms, command, name)
        if header is not None:
            write(
                name,
                lambda file, direction=direction, header=header: native.write_mm_log(file, direction, header),  # type: ignore[misc]
            )
        recorded = native.packets(packets) if raw else {}
        for flow in range(1, len(record.flows) + 1) if raw else ():
            texts = raw_log_texts(recorded, ends_ms if direction == "up" else ends_ms[::-1], flow, " ".join(command))
            for side, text in zip(("egress", "ingress"), texts, strict=True):
                name = raw_log_file(run.contender.key, run.number, flow, run.digest, side, link)
                write(name, lambda file, text=text: file.write_text(text))  # type: ignore[misc]
    return written


def unpack_log(packed: Path) -> None:
    """Write the uncompressed form of a log, for Pantheon's tools, next to the compressed file."""
    plain = packed.with_name(packed.name.removesuffix(PACKED))
    partial = plain.with_name(f".{plain.name}.partial")
    with gzip.open(packed) as source, partial.open("wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
    partial.replace(plain)


def _ends_ms(run: Run, record: RunRecord, epoch_ms: float) -> tuple[float, float]:
    """Return the start of the run by the senders' clock and by the receivers' clock, ms since the epoch.

    Offsets measured with a time server are in statistics files, and merging adds them again.
    """
    hosts, offsets = hosts_of(run.path), (record.path_report or {}).get("clock_offsets_ms")
    if hosts is None or offsets is None:
        return epoch_ms, epoch_ms
    sender, receiver = (float(offsets[side.capitalize()]) for side in hosts.ends)
    return epoch_ms, epoch_ms + sender - receiver


def has_raw_logs(names: Iterable[str]) -> bool:
    """Return whether the packet logs of a run include raw logs."""
    return any(name.endswith(".ingress") for name in names)


def what_is_wrong(log: Path, known: Mapping[str, Any]) -> str | None:
    """Return the problem of a packet log, or None.

    If its change time equals the time in its fingerprint, the log is not read, since a gigabyte of logs takes seconds:
    the kernel sets this time on every write, and it cannot be set back. For a copy with another time, the bytes decide.

    Args:
        log: The file.
        known: Its :func:`fingerprint`.
    """
    try:
        stat = log.stat()
        if stat.st_size != known["bytes"]:
            return "is cut off or was edited"
        if stat.st_ctime_ns != known["changed_ns"] and _sha256(log) != known["sha256"]:
            return "was edited"
    except OSError:
        return "is missing"
    return None


def fingerprint(log: Path) -> dict[str, Any]:
    """Return size, change time and checksum of a packet log."""
    stat = log.stat()
    return {"bytes": stat.st_size, "changed_ns": stat.st_ctime_ns, "sha256": _sha256(log)}


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while part := opened.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def mm_log_header(
    uplink: Sequence[Mapping[str, Any]],
    downlink: Sequence[Mapping[str, Any]],
    direction: Direction,
    epoch_ms: float,
    command: Sequence[str],
    name: str,
) -> str | None:
    """Return the header of mahimahi's log for the first link of a direction; None if that link follows no trace.

    It has five lines, and a sixth if the link is nested in other shells (ravinet/mahimahi @ae477d4
    ``src/frontend/link_queue.cc``). ccgym's links start with the run, so the base timestamp is 0.

    Args:
        uplink: the elements that data crosses, as in the specification given to the simulator.
        downlink: the elements that ACKs cross.
        direction: direction of the log.
        epoch_ms: start of the run, milliseconds since the epoch.
        command: the command line for the header.
        name: the name of the log itself.
    """
    links = [element for element in (uplink if direction == "up" else downlink) if element["kind"] == "link"]
    if not links or links[0]["schedule"]["kind"] != "trace":
        return None
    link = links[0]
    side = "Uplink" if direction == "up" else "Downlink"
    quoted = " ".join(f"'{word}'" for word in command)
    lines = [
        f"# mahimahi mm-link ({side}) [{link['schedule']['name']}] > {name}",
        f"# command line: {quoted}",
        f"# queue: {queue_text(link['queue'])}",
        f"# init timestamp: {round(epoch_ms)}",
        "# base timestamp: 0",
    ]
    # Data crosses the outermost shell last. A delay applies to both directions and is listed once.
    outer = [_shell(element, "up") for element in reversed(uplink)]
    outer += [_shell(element, "down") for element in downlink if element["kind"] == "loss"]
    if any(outer):
        lines.append(f"# mahimahi config: {''.join(outer)}")
    return "\n".join(lines)


def queue_text(queue: Mapping[str, Any]) -> str:
    """Return a queue as mahimahi prints it: ``droptail [packets=94]``."""
    shown = queue["kind"].removeprefix("mahimahi_")
    limit = queue.get("limit") or {}
    settings = [f"{unit}={limit[unit]}" for unit in ("bytes", "packets") if limit.get(unit)]
    settings += [
        f"{name}={queue[name] // NS_PER_MS}"
        for name in ("target", "interval", "qdelay_ref", "max_burst")
        if name in queue
    ]
    return f"{shown} [{', '.join(settings)}]" if settings else shown


def _shell(element: Mapping[str, Any], direction: Direction) -> str:
    """Return the label of an outer shell, with a trailing space; empty for elements that mahimahi does not have."""
    if element["kind"] == "delay" and isinstance(element["delay"], int):
        return f"[delay {element['delay'] // NS_PER_MS} ms] "
    if element["kind"] == "loss" and isinstance(element["probability"], (int, float)):
        return f"[loss {direction}={element['probability']:g}] "
    return ""
