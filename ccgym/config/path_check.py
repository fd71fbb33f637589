"""Mistakes in a path that its traces do not show; for those see :mod:`ccgym.tracetools.check`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ccgym.config.catalog import TraceSource
from ccgym.config.declared import DIRECTIONS
from ccgym.config.models import AnyElement, Link
from ccgym.config.quantities import Limit
from ccgym.tracetools.check import Finding
from ccgym.units import NS_PER_S, PACKET_BYTES

LONG_RTT_NS = 5 * NS_PER_S
"""A longer round trip was probably meant in another unit: one to the moon takes 2.6 s."""


def shadowed_file(name: str, source: TraceSource) -> list[Finding]:
    """Warn of a file in the working directory that the catalog's trace of that name hides."""
    local = Path(name)
    if source.entry is None or os.path.dirname(name) or not local.is_file():
        return []
    if source.materialize().read_bytes() == local.read_bytes():
        return []
    return [
        Finding(
            "warning",
            "shadowed-file",
            f"the working directory has another {name}, and the catalog's trace of that name is used",
            cause="names of the catalog come before files",
            remedy=f"write ./{name} to use the file",
            subject=name,
        )
    ]


def too_small_queues(chain: Iterable[AnyElement]) -> list[Finding]:
    """Refuse byte limits in which no full packet fits."""
    findings = []
    for element in chain:
        for direction in DIRECTIONS:
            link = element.toward(direction) if isinstance(element, Link) else None
            limit = getattr(link.queue, "limit", Limit()) if link is not None else Limit()
            unit = PACKET_BYTES + (link.overhead if link is not None else 0)
            if limit.bytes is not None and limit.bytes < unit:
                findings.append(
                    Finding(
                        "error",
                        "queue-too-small",
                        f"the {direction} queue holds {limit.bytes} bytes, and a full packet is {unit}",
                        cause="limits in bytes count what mahimahi charges on top of the IP length",
                        remedy=f"give it {unit}B or more, or a limit in packets",
                    )
                )
    return findings


def unlikely_path(base_rtt_ns: int, limits_flows: bool, name: str) -> list[Finding]:
    """Warn of a path without propagation delay, with a very long one, or on which nothing limits a flow."""
    seconds = base_rtt_ns / NS_PER_S
    findings = []
    if base_rtt_ns <= 0:
        findings.append(
            Finding(
                "warning",
                "no-delay",
                "the path has no propagation delay",
                cause="a trace says when packets may leave, not how long they travel",
                remedy="give a whole path, such as 'mm-delay 20 mm-link UP DOWN', or rtt='40ms'",
                subject=name,
            )
        )
    if base_rtt_ns > LONG_RTT_NS:
        findings.append(
            Finding(
                "warning",
                "long-delay",
                f"the base RTT is {seconds:g} s",
                cause="plain numbers are seconds",
                remedy=f"if you mean milliseconds, write '{seconds:g}ms'",
                subject=name,
            )
        )
    if not limits_flows:
        findings.append(
            Finding(
                "warning",
                "no-link",
                "the path has no link, so that nothing limits a greedy flow; such flows are refused",
                cause="delays pass on every packet; only a link has a rate",
                remedy="add a link, as in 'mm-delay 20 mm-link 12mbps 12mbps' or rate='12mbps', or use fixed_rate",
                subject=name,
            )
        )
    return findings
