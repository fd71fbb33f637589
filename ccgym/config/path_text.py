"""A path in a few lines for people."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from ccgym.config.capacity import Piecewise, capacity
from ccgym.config.models import AnyQueue, LinkDirection
from ccgym.errors import ConfigError
from ccgym.units import NS_PER_MS, PACKET_BYTES

if TYPE_CHECKING:
    from ccgym.config.path import NetworkPath


def describe_path(path: NetworkPath) -> str:
    """What data and acknowledgements cross, capacity, round trip, and where the path comes from."""
    head = path.name or "unnamed path"
    lines = [f"{head}: {path.title}" if path.title else head]
    for label, direction in (("data", "uplink"), ("acks", "downlink")):
        crossed = list(reversed(path.chain)) if direction == "uplink" else list(path.chain)
        words = [element.describe("uplink" if direction == "uplink" else "downlink") for element in crossed]
        lines.append(f"  {label:<9} {' → '.join(filter(None, words)) or 'unconstrained'}")
    if path.links:
        product = path.bdp()
        lines.append(f"  capacity  {path.mean_rate_mbps:.6g} Mbit/s{_changes(path.links)}")
        lines.append(
            f"  base RTT  {_milliseconds(path.rtt_steps())}; bandwidth-delay product "
            f"{float(product):.4g} packets of {PACKET_BYTES} bytes{_in_products(path.queue, product)}"
        )
    else:
        lines.append(f"  base RTT  {_milliseconds(path.rtt_steps())}")
    try:
        if all(link.trace is not None for link in path.links) and path.trace_names():
            lines.append(f"  mahimahi  {path.to_mahimahi()}")
    except ConfigError:
        pass
    if path.source:
        lines.append(f"  source    {path.source}")
    return "\n".join(lines)


def _changes(links: Sequence[LinkDirection]) -> str:
    steps = max(len(capacity(link)) for link in links)
    return f" on average ({steps} steps)" if steps > 1 else ""


def _milliseconds(steps: Piecewise) -> str:
    low, high = min(value for _, value in steps), max(value for _, value in steps)
    if low == high:
        return f"{float(low) / NS_PER_MS:g} ms"
    return f"{float(low) / NS_PER_MS:g} to {float(high) / NS_PER_MS:g} ms"


def _in_products(queue: AnyQueue | None, product: Fraction) -> str:
    limit = getattr(queue, "limit", None)
    if limit is None or limit.packets is None or product <= 0:
        return ""
    return f"; queue {limit.packets / float(product):.3g} of it"
