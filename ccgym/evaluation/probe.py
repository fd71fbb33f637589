"""Probe an empty real path before schemes run over it: measure the delay of a few packets without other traffic.

If the delay of the empty path is wrong, results are precise but meaningless. A student's report compared schemes
over a trace with pauses of 1.5 s, and measured these pauses (``docs/guides/teaching.md``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from ccgym.config.catalog import resolve_trace
from ccgym.config.path import NetworkPath
from ccgym.errors import ConfigError
from ccgym.evaluation.backends import Backend
from ccgym.evaluation.prepared_run import Record
from ccgym.invocation import command
from ccgym.schemes.flow import FlowSpec
from ccgym.units import NS_PER_S, Nanoseconds

PACKETS: Final = 20
DURATION_NS: Final = 2 * NS_PER_S
"""Duration of the probe."""

MAX_SHARE: Final = 0.1
"""Maximum fraction of the link's mean rate for the probe packets, so that the link stays almost empty."""

ALLOWED_MS: Final = 100.0
ALLOWED_RTTS: Final = 5.0
"""Maximum waiting time of the median packet, after propagation and transmission: the larger of both values."""

PACKET_BITS: Final = 12_000


@dataclass(frozen=True)
class Probe:
    """Result of a probe."""

    packets: int
    """Number of packets that arrived."""
    one_way_delay_ms: float
    """Median one-way delay, ms."""
    own_ms: float
    """Expected delay of the empty path: propagation, and transmission of one packet at the mean rate, ms."""


def probe(path: NetworkPath, runs_on: Backend, seed: int) -> Probe:
    """Send packets over the empty path and return their delay.

    Raises:
        ConfigError: No packet arrived, or the median packet waited longer than expected.
        CcgymError: The backend cannot run the path here.
    """
    rate_mbps = PACKETS * PACKET_BITS / 1e6 / (DURATION_NS / NS_PER_S)
    capacity_mbps = path.mean_rate_mbps
    if np.isfinite(capacity_mbps) and capacity_mbps > 0:
        rate_mbps = min(rate_mbps, MAX_SHARE * capacity_mbps)
    flow = FlowSpec(scheme="fixed_rate", params={"rate_mbps": rate_mbps})
    duration = Nanoseconds(DURATION_NS + path.base_rtt_ns)
    record = runs_on.run(path, [flow], duration, seed, Record())
    assert record.packets is not None
    delays = record.packets.delay_ns
    own_ms = path.one_way_delay_ms + (PACKET_BITS / 1e3 / capacity_mbps if capacity_mbps > 0 else 0.0)
    allowed_ms = own_ms + max(ALLOWED_MS, ALLOWED_RTTS * path.base_rtt_ms)
    expected = f"at most {allowed_ms:.0f} ms: the path's own {own_ms:.1f} ms, and some waiting time"
    if not delays.size:
        nothing = f"no packet over the empty path arrived within {duration / 1e9:g} s"
        raise _refused(path, nothing, expected)
    found = Probe(int(delays.size), float(np.median(delays)) / 1e6, own_ms)
    if found.one_way_delay_ms > allowed_ms and not _intended(path):
        raise _refused(path, f"on the empty path the median packet takes {found.one_way_delay_ms:.0f} ms", expected)
    return found


def _refused(path: NetworkPath, found: str, expected: str) -> ConfigError:
    traces = path.trace_names()
    hint = f"see when the link delivers: {command('paths show')} {traces[0]}" if traces else "look at the path's links"
    return ConfigError("path-blocked", found, where=path.name or "path", expected=expected, hint=hint)


def _intended(path: NetworkPath) -> bool:
    """Return whether the catalog marks long gaps of a trace as intended."""
    return any("long-gap" in resolve_trace(name).intended for name in path.trace_names())
