"""Known properties of a path before a run, for flags."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ccgym.config.catalog import resolve_trace
from ccgym.config.path import NetworkPath
from ccgym.errors import ConfigError
from ccgym.evaluation.capacity import OPPORTUNITY_BYTES, slowest_link
from ccgym.evaluation.results import ResultSet
from ccgym.tracetools.check import rate_in_name


@dataclass(frozen=True)
class PathFacts:
    """Properties of the path that the rules use."""

    name: str
    capacity_mbps: float | None
    """Mean computed capacity over the runs, Mbit/s; None if unknown."""
    one_way_delay_ms: float
    """Propagation delay of the data direction, ms."""
    base_rtt_ms: float
    """Propagation round-trip time, ms."""
    random_loss: float
    """Probability of random loss in the data direction."""
    drain_ms: float | None
    """Time to drain a full bottleneck queue, ms; None if the queue has no limit in packets or bytes."""
    largest_gap_ms: float | None
    """Largest time between delivery opportunities, ms; None without a trace."""
    trace: str | None
    """Name of the bottleneck's trace."""
    declared_mbps: float | None
    """Declared rate of the trace, Mbit/s; None if there is none, or if a difference to it is known and intended."""
    options: str
    """Options of `ccgym evaluate` that select this path."""


def path_facts(path: NetworkPath, results: ResultSet) -> PathFacts:
    """Return the properties of the path, with the capacity from its runs."""
    compiled = path.compile()
    capacities = [cell.record.link.capacity_mbps for cell in results.cells if cell.record.link.capacity_mbps]
    capacity = float(np.mean(capacities)) if capacities else None
    link = slowest_link(compiled.uplink, compiled.traces)
    limit: Mapping[str, Any] = {} if link is None else link["queue"].get("limit") or {}
    sizes = [limit["packets"] * OPPORTUNITY_BYTES] if limit.get("packets") else []
    sizes += [limit["bytes"]] if limit.get("bytes") else []
    schedule = {} if link is None else link["schedule"]
    trace = schedule.get("name") if schedule.get("kind") == "trace" else None
    gap = None
    if trace is not None:
        times = np.asarray(compiled.traces[trace].times_ms).astype(np.int64)
        gap = float(np.diff(times, prepend=0).max())
    return PathFacts(
        name=path.name or "unnamed path",
        capacity_mbps=capacity,
        one_way_delay_ms=path.one_way_delay_ms,
        base_rtt_ms=path.base_rtt_ms,
        random_loss=path.loss,
        drain_ms=min(sizes) * 8 / 1e3 / capacity if sizes and capacity else None,
        largest_gap_ms=gap,
        trace=trace,
        declared_mbps=None if trace is None else _declared_mbps(trace),
        options=_options(path),
    )


def _declared_mbps(trace: str) -> float | None:
    entry = resolve_trace(trace).entry
    if entry is not None and "rate-mismatch" in entry.intended:
        return None
    declared = entry.nominal_rate if entry is not None and entry.nominal_rate else rate_in_name(trace)
    return declared / 1e6 if declared else None


def _options(path: NetworkPath) -> str:
    if path.name in path.names():
        return f"--trace {path.name}"
    if len(path.chain) == 1 and path.base_rtt_ns == 0 and path.trace_names():
        return f"--trace {shlex.quote(path.trace_names()[0])}"
    try:
        return f"--mahimahi {shlex.quote(path.to_mahimahi())}"
    except ConfigError:
        return "--trace PATH.yaml"
