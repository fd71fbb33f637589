"""The rig that all tests share: a dumbbell with a plain FIFO bottleneck, and repetitions that differ.

A simulated dumbbell repeats itself exactly, and two flows on it lock into phase with the queue (Floyd and Jacobson, "On
Traffic Phase Effects in Packet-Switched Gateways", 1992). Their cure is used here: a random delay of up to one packet's
transmission time in front of the queue. Besides, a flow that joins does so a random number of round trips later.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np

from ccgym.config.elements import AnyElement, Link
from ccgym.config.path import NetworkPath
from ccgym.config.queues import Droptail
from ccgym.errors import ConfigError
from ccgym.units import NS_PER_MS, PACKET_BITS, Nanoseconds, format_rate

BUFFERS_BDP: Final = (0.2, 1.0, 4.0)
"""Buffers of the common rig, bandwidth-delay products."""
JOIN_SPREAD: Final = 0.05
"""A joining flow starts up to this share of its time later."""

RateLike: TypeAlias = "float | list[tuple[float, float]]"
"""Mbit/s, or steps (seconds, Mbit/s)."""
DelayLike: TypeAlias = "float | list[tuple[float, float]]"
"""One-way ms, or steps (seconds, one-way ms)."""


def dumbbell(
    rate_mbps: RateLike,
    one_way_ms: DelayLike,
    *,
    buffer_bdp: float | None = None,
    buffer_packets: int | None = None,
    loss: float = 0.0,
    ack_loss: list[tuple[float, float]] | None = None,
    phase: bool = True,
) -> NetworkPath:
    """A dumbbell: the same delay both ways, a droptail bottleneck for the data, acknowledgements unconstrained.

    Args:
        rate_mbps: Rate of the bottleneck, or steps.
        one_way_ms: Propagation delay of each direction, or steps.
        buffer_bdp: Buffer in bandwidth-delay products; of the largest one where the path changes.
        buffer_packets: Or in packets.
        loss: Random loss of data beside the queue's.
        ack_loss: Loss of acknowledgements in steps (seconds, probability).
        phase: Whether packets are delayed at random by up to one transmission time, against phase effects.
    """
    limit = f"{buffer_packets}p" if buffer_packets is not None else f"{buffer_bdp or 1.0:g}bdp"
    rate = [(at, _mbps(value)) for at, value in rate_mbps] if isinstance(rate_mbps, list) else _mbps(rate_mbps)
    delay = [(at, _ms(value)) for at, value in one_way_ms] if isinstance(one_way_ms, list) else _ms(one_way_ms)
    chain: list[dict[str, object]] = [{"kind": "delay", "delay": delay}]
    if ack_loss is not None:
        steps = [(at, probability) for at, probability in ack_loss]
        chain.append({"kind": "loss", "direction": "downlink", "probability": steps})
    if loss:
        chain.append({"kind": "loss", "probability": loss})
    chain.append({"kind": "link", "uplink": {"rate": rate, "queue": {"kind": "droptail", "limit": limit}}})
    if phase:
        fastest = max(value for _, value in rate_mbps) if isinstance(rate_mbps, list) else rate_mbps
        chain.append({"kind": "jitter", "distribution": Nanoseconds(round(PACKET_BITS * 1000 / fastest))})
    path = NetworkPath(chain=chain)
    require_fifo(path)
    return path


def require_fifo(path: NetworkPath) -> None:
    """Make sure that every bottleneck is a plain FIFO: behind a fair queue every scheme looks fair.

    Raises:
        ConfigError: There is no bottleneck for the data, or one with another discipline.
    """
    elements: tuple[AnyElement, ...] = path.chain
    links = [element.uplink for element in elements if isinstance(element, Link) and element.uplink is not None]
    if not links:
        raise ConfigError("a path without a bottleneck", expected="a dumbbell with a droptail queue")
    for link in links:
        if not isinstance(link.queue, Droptail):
            raise ConfigError(
                link.queue.describe(),
                expected="a droptail queue",
                hint="a fair or managed queue shares the link itself, whatever the schemes do",
            )


def joins_at(time_s: float, rng: np.random.Generator) -> int:
    """When a flow joins, nanoseconds: at a time or up to :data:`JOIN_SPREAD` of it later."""
    return round(time_s * (1 + JOIN_SPREAD * float(rng.random())) * 1e9)


def _ms(milliseconds: float) -> Nanoseconds:
    return Nanoseconds(round(milliseconds * NS_PER_MS))


def _mbps(rate: float) -> str:
    return format_rate(round(rate * 1e6))
