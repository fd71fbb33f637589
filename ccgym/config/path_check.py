"""Mistakes in a path. For mistakes in its traces see :mod:`ccgym.tracetools.check`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ccgym.config.catalog import TraceSource, resolve_trace
from ccgym.config.chain import Chain
from ccgym.config.declared import DIRECTIONS
from ccgym.config.models import Link
from ccgym.config.quantities import Limit
from ccgym.tracetools.check import Finding, find_mistakes
from ccgym.units import NS_PER_S, PACKET_BYTES

LONG_RTT_NS: Final = 5 * NS_PER_S
"""A longer RTT probably has a wrong unit. For comparison: the RTT to the moon is 2.6 s."""


def mistakes_in(path: Chain, name: str) -> list[Finding]:
    """Return wrong or unusual properties of a path, except those that the catalog lists as intended; errors first."""
    findings: list[Finding] = []
    for trace in path.trace_names():
        source = resolve_trace(trace)
        nominal = source.entry.nominal_rate if source.entry is not None else None
        found = find_mistakes(source.load(), nominal, path.base_rtt_ns, name=os.path.basename(trace))
        findings += [one for one in found if one.code not in source.intended]
        findings += _shadowed_file(trace, source)
    findings += [*_small_queues(path), *_unlikely(path, name)]
    return sorted(findings, key=lambda finding: finding.severity != "error")


def _shadowed_file(name: str, source: TraceSource) -> Iterator[Finding]:
    """Warn of a file in the working directory that is hidden by a trace of the catalog with the same name."""
    local = Path(name)
    if source.entry is None or os.path.dirname(name) or not local.is_file():
        return
    if source.materialize().read_bytes() != local.read_bytes():
        yield Finding(
            "warning",
            "shadowed-file",
            f"the working directory has another {name}, but the trace of the catalog is used",
            cause="names of the catalog have priority over files",
            remedy=f"write ./{name} to use the file",
            subject=name,
        )


def _small_queues(path: Chain) -> Iterator[Finding]:
    """Refuse limits in bytes that are smaller than a full packet."""
    links = [(way, one.toward(way)) for one in path.chain if isinstance(one, Link) for way in DIRECTIONS]
    for direction, link in links:
        limit = getattr(link.queue, "limit", Limit()) if link is not None else Limit()
        unit = PACKET_BYTES + (link.overhead if link is not None else 0)
        if limit.bytes is not None and limit.bytes < unit:
            yield Finding(
                "error",
                "queue-too-small",
                f"the {direction} queue has a limit of {limit.bytes} bytes, but a full packet has {unit}",
                cause="limits in bytes also count the bytes that mahimahi adds to the IP length",
                remedy=f"set a limit of at least {unit}B, or a limit in packets",
            )


def _unlikely(path: Chain, name: str) -> Iterator[Finding]:
    """Warn of a path without propagation delay, with a very long delay, or without a limit for flows."""
    seconds = path.base_rtt_ns / NS_PER_S
    if path.base_rtt_ns <= 0:
        yield Finding(
            "warning",
            "no-delay",
            "the path has no propagation delay",
            cause="a trace contains only the times when packets can leave the link, no propagation delay",
            remedy="give a complete path, such as 'mm-delay 20 mm-link UP DOWN', or rtt='40ms'",
            subject=name,
        )
    if path.base_rtt_ns > LONG_RTT_NS:
        yield Finding(
            "warning",
            "long-delay",
            f"the base RTT is {seconds:g} s",
            cause="plain numbers are seconds",
            remedy=f"if you mean milliseconds, write '{seconds:g}ms'",
            subject=name,
        )
    if not path.limits_flows:
        yield Finding(
            "warning",
            "no-link",
            "the path has no link, so nothing limits a greedy flow; ccgym refuses such flows",
            cause="only a link has a rate; delays forward every packet",
            remedy="add a link, as in 'mm-delay 20 mm-link 12mbps 12mbps' or rate='12mbps', or use fixed_rate",
            subject=name,
        )
