"""The packet logs of a run: written, and known again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from ccgym.evaluation import pantheon
from ccgym.evaluation.pantheon import mahimahi_log
from ccgym.evaluation.run import Run
from ccgym.evaluation.run_record import RunRecord

_WAYS: tuple[tuple[str, Literal["data", "ack"], mahimahi_log.Direction], ...] = (
    ("datalink", "data", "up"),
    ("acklink", "ack", "down"),
)


def write_packet_logs(run: Run, record: RunRecord, directory: Path) -> dict[str, dict[str, Any]]:
    """Write the packet logs of a run; their names, and by what each is known again.

    Args:
        run: What was run, with acknowledgements and link events recorded.
        record: What came out.
        directory: Where to.
    """
    native = record.native
    assert native is not None
    epoch_ms = record.started_epoch_s * 1e3
    compiled = run.path.compile()
    command = ["ccgym", run.path.name or "unnamed path"]
    written: dict[str, dict[str, Any]] = {}

    def write(name: str, writer: Callable[[Path], None]) -> None:
        partial = directory / f".{name}.partial"
        writer(partial)
        partial.replace(directory / name)
        written[name] = fingerprint(directory / name)

    for link, packets, direction in _WAYS:
        write(
            pantheon.tunnel_log_file(run.contender.key, run.number, link),
            lambda file, packets=packets: native.write_tunnel_log(file, packets, epoch_ms),  # type: ignore[misc]
        )
        name = pantheon.mm_log_file(run.contender.key, run.number, link)
        header = mahimahi_log.mm_log_header(compiled.uplink, compiled.downlink, direction, epoch_ms, command, name)
        if header is not None:
            write(
                name,
                lambda file, direction=direction, header=header: native.write_mm_log(file, direction, header),  # type: ignore[misc]
            )
    return written


def what_is_wrong(log: Path, known: Mapping[str, Any]) -> str | None:
    """What is wrong with a packet log, or None.

    A log whose change time is still that of its fingerprint is not read again, since a gigabyte of logs takes seconds:
    the kernel sets this time on every write, and does not let it be set back. A copy has another, so its bytes decide.

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
    """By what a packet log is known again."""
    stat = log.stat()
    return {"bytes": stat.st_size, "changed_ns": stat.st_ctime_ns, "sha256": _sha256(log)}


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while part := opened.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()
