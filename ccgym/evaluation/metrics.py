"""Pantheon's metrics: throughput, 95th-percentile one-way delay, loss, capacity and utilization.

They are computed only here, for packets of the simulator, of real paths, and of logs that Pantheon itself wrote. The
definitions are from Pantheon's ``src/analysis/tunnel_graph.py`` (StanfordSNR/pantheon @23e738c):

============================  =========================================================================================
throughput                    bits that left / (last departure − first departure); 0 if there is one departure time
ingress                       the same for entering packets
95th-percentile delay         ascending one-way delays, element round(0.95·(n−1)), ties to even; never interpolated
loss                          1 − bytes that left / bytes that entered; bytes in flight at the end count as lost
total throughput              all bits that left / (latest − first departure of any flow): not the sum over flows
total delay and loss          over all packets, pooled
capacity                      bits of the link's delivery opportunities / (last − first opportunity)
utilization                   total throughput / capacity; may exceed 1
frame delay                   from a frame's capture to the departure of its last packet, for frames whose packets all
                              left; mean, and the 95th percentile as above
bit rate                      payload bits of all encoded frames / life of the flow
frame loss                    frames that were skipped, or of which a packet never left / frames captured
validity                      a run is ignored if its departures span less than 0.8 of the set run time, or if for one
                              of its flows no packet left, or no packet entered
============================  =========================================================================================

Sizes are bytes of IP packets as Pantheon's tunnel would measure them; Mbit are 10⁶ bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ccgym.units import NS_PER_S

if TYPE_CHECKING:
    from ccgym._core import SimResult

IntArray = npt.NDArray[np.int64]

NEVER: Final = np.uint64(2**64 - 1)
"""Departure time in the native core of a packet that was lost or still in flight at the end."""

MIN_RUN_FRACTION: Final = 0.8
"""Pantheon ignores runs whose departures span less than this fraction of the set run time."""

DELAY_PERCENTILE: Final = 0.95
"""The delay percentile of Pantheon's tables, as a fraction."""


def _empty() -> IntArray:
    return np.empty(0, dtype=np.int64)


def _of_flow(flow: int, order: IntArray, flows: IntArray) -> IntArray:
    """Return the indices of a flow's packets, ascending."""
    first, last = np.searchsorted(flows, (flow, flow + 1))
    return order[first:last]


def _whole_microseconds(ns: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    return np.asarray((ns + np.uint64(500)) // np.uint64(1000) * np.uint64(1000))


@dataclass(frozen=True)
class PacketLog:
    """The packets that entered and left a path in one direction, with their times.

    Entering and leaving packets are two independent lists, because Pantheon's merged logs do not state which departure
    belongs to which arrival. Flows are numbered from 1, as in these logs.
    """

    arrival_ns: IntArray
    """Times when packets entered the path, nanoseconds."""
    arrival_bytes: IntArray
    """Sizes of these packets, bytes."""
    arrival_flow: IntArray
    """Flows of these packets, from 1."""
    departure_ns: IntArray
    """Times when packets left the path, nanoseconds."""
    departure_bytes: IntArray
    """Sizes of these packets, bytes."""
    departure_flow: IntArray
    """Flows of these packets, from 1."""
    delay_ns: IntArray
    """One-way delay of each departure, nanoseconds: propagation and queueing together."""
    opportunity_ns: IntArray = field(default_factory=_empty)
    """Times of the bottleneck's delivery opportunities, nanoseconds; empty if unknown."""
    opportunity_bytes: IntArray = field(default_factory=_empty)
    """Bytes of each opportunity."""
    flow_count: int = 0
    """Number of flows, including flows without any packet; 0 if unknown."""

    @classmethod
    def from_packets(cls, packets: Mapping[str, npt.NDArray[Any]], flow_count: int = 0) -> PacketLog:
        """Return the log of the native core's arrays ``entered_ns``, ``left_ns``, ``size``, ``flow`` (flows from 0).

        Times are rounded to microseconds, the unit of Pantheon's tunnel, as in ccgym's packet logs. So numbers computed
        here and numbers computed from logs are equal to the last digit.
        """
        entered = _whole_microseconds(np.asarray(packets["entered_ns"], dtype=np.uint64))
        left = np.asarray(packets["left_ns"], dtype=np.uint64)
        size = np.asarray(packets["size"]).astype(np.int64)
        flow = np.asarray(packets["flow"]).astype(np.int64) + 1
        delivered = left != NEVER
        departure = _whole_microseconds(left[delivered]).astype(np.int64)
        entry = entered.astype(np.int64)
        return cls(
            arrival_ns=entry,
            arrival_bytes=size,
            arrival_flow=flow,
            departure_ns=departure,
            departure_bytes=size[delivered],
            departure_flow=flow[delivered],
            delay_ns=departure - entry[delivered],
            flow_count=max(flow_count, int(flow.max(initial=0))),
        )

    @property
    def flows(self) -> list[int]:
        """The flow numbers, ascending: 1…flow_count, or the numbers in the packets if the count is unknown."""
        if self.flow_count:
            return list(range(1, self.flow_count + 1))
        seen = np.union1d(self.arrival_flow, self.departure_flow)
        return [int(flow) for flow in seen]

    @property
    def origin_ns(self) -> int:
        """The first event of the log: time zero of Pantheon's figures."""
        firsts = [int(a.min()) for a in (self.arrival_ns, self.departure_ns, self.opportunity_ns) if a.size]
        return min(firsts, default=0)

    @cached_property
    def _orders(self) -> tuple[tuple[IntArray, IntArray], ...]:
        """Indices of arrivals and of departures, ordered by flow, and the flows in this order.

        With many flows, a search through all packets for each flow would take minutes.
        """
        orders = (np.argsort(flows, kind="stable") for flows in (self.arrival_flow, self.departure_flow))
        both = zip(orders, (self.arrival_flow, self.departure_flow), strict=True)
        return tuple((order, flows[order]) for order, flows in both)

    def of_flow(self, flow: int) -> PacketLog:
        """Return the packets of one flow (numbered from 1), without the link's opportunities."""
        arrived: slice | IntArray = slice(None)
        departed: slice | IntArray = slice(None)
        if self.flow_count != 1 or flow != 1:
            arrived, departed = (_of_flow(flow, *order) for order in self._orders)
        return PacketLog(
            arrival_ns=self.arrival_ns[arrived],
            arrival_bytes=self.arrival_bytes[arrived],
            arrival_flow=self.arrival_flow[arrived],
            departure_ns=self.departure_ns[departed],
            departure_bytes=self.departure_bytes[departed],
            departure_flow=self.departure_flow[departed],
            delay_ns=self.delay_ns[departed],
        )


@dataclass(frozen=True)
class PantheonMetrics:
    """Pantheon's numbers for one flow, or for all flows of a run together."""

    throughput_mbps: float
    """Rate at which packets left the path, Mbit/s."""
    ingress_mbps: float | None
    """Rate at which packets entered the path, Mbit/s; this and the next three are None in rounded numbers."""
    delay_p95_ms: float | None
    """95th percentile of the per-packet one-way delay, ms; None if no packet left the path."""
    loss: float | None
    """Fraction of the entered bytes that never left; None if no packet entered."""
    span_s: float | None
    """Seconds from the first to the last departure."""
    packets_in: int | None
    packets_out: int | None

    @classmethod
    def rounded(
        cls, throughput_mbps: float = 0.0, delay_p95_ms: float | None = None, loss: float | None = None
    ) -> PantheonMetrics:
        """Return the numbers of a flow that a statistics file contains."""
        return cls(throughput_mbps, None, delay_p95_ms, loss, None, None, None)


@dataclass(frozen=True)
class RunMetrics:
    """Pantheon's numbers for one run: for all flows together, for each flow, and for the link."""

    total: PantheonMetrics
    """Numbers over all packets together."""
    flows: dict[int, PantheonMetrics]
    """Numbers per flow, by flow number from 1."""
    capacity_mbps: float | None
    """Average capacity of the bottleneck over the run, Mbit/s; None if unknown."""

    @property
    def utilization(self) -> float | None:
        """Total throughput / capacity, a fraction that may exceed 1; None if the capacity is unknown."""
        if not self.capacity_mbps:
            return None
        return self.total.throughput_mbps / self.capacity_mbps

    def invalid_reason(self, runtime_s: float) -> str | None:
        """Return the reason why Pantheon would ignore this run, or None if it counts.

        Args:
            runtime_s: the set run time, seconds.
        """
        if not self.total.packets_out:
            return "no packet left the path"
        for what, flows in (
            ("sent nothing", [flow for flow, metrics in self.flows.items() if not metrics.packets_in]),
            ("sent packets but none left the path", [f for f, m in self.flows.items() if not m.packets_out]),
        ):
            if flows:
                return f"{', '.join(f'flow {flow}' for flow in flows)} {what}"
        if self.total.span_s is not None and self.total.span_s < MIN_RUN_FRACTION * runtime_s:
            return (
                f"departures span {self.total.span_s:.1f} s, less than {MIN_RUN_FRACTION:g} of the "
                f"{runtime_s:g} s run time"
            )
        return None


def percentile_nearest(values: npt.NDArray[Any], fraction: float = DELAY_PERCENTILE) -> float:
    """Return the element at rank ``fraction·(n−1)`` of the ascending values, the rank rounded half to even.

    This is numpy's percentile with ``method="nearest"``, in linear time. ``values`` must not be empty.
    """
    rank = int(np.rint(fraction * (values.size - 1)))
    return float(np.partition(values, rank)[rank])


class Passed(NamedTuple):
    """Packets that passed one end of the path."""

    packets: int
    """Number of packets."""
    bytes: int
    """Bytes of IP packets."""
    first_ns: int
    """Time of the first packet, nanoseconds."""
    last_ns: int
    """Time of the last packet, nanoseconds."""

    @classmethod
    def of(cls, times_ns: IntArray, sizes: IntArray) -> Passed:
        """Return the totals of packets that passed at these times."""
        first, last = (int(times_ns.min()), int(times_ns.max())) if times_ns.size else (0, 0)
        return cls(int(times_ns.size), int(sizes.sum()), first, last)

    @property
    def span_ns(self) -> int:
        """Time from the first to the last packet, nanoseconds."""
        return self.last_ns - self.first_ns

    @property
    def mbps(self) -> float:
        """Bits over the span, Mbit/s; 0 if all packets have the same time."""
        return self.bytes * 8 * 1000 / self.span_ns if self.span_ns else 0.0


def flow_metrics(entered: Passed, left: Passed, delay_p95_ns: float | None) -> PantheonMetrics:
    """Return Pantheon's numbers, from totals over packets."""
    return PantheonMetrics(
        throughput_mbps=left.mbps,
        ingress_mbps=entered.mbps,
        delay_p95_ms=None if delay_p95_ns is None else delay_p95_ns / 1e6,
        loss=1.0 - left.bytes / entered.bytes if entered.bytes else None,
        span_s=left.span_ns / NS_PER_S,
        packets_in=entered.packets,
        packets_out=left.packets,
    )


def _log_metrics(log: PacketLog) -> PantheonMetrics:
    return flow_metrics(
        Passed.of(log.arrival_ns, log.arrival_bytes),
        Passed.of(log.departure_ns, log.departure_bytes),
        percentile_nearest(log.delay_ns) if log.delay_ns.size else None,
    )


@dataclass(frozen=True)
class MediaMetrics:
    """Numbers of a flow that carries video."""

    frame_delay_ms: float | None
    """Mean delay of the completely received frames, ms; None if there are none."""
    frame_delay_p95_ms: float | None
    """95th percentile of this delay, ms."""
    frame_loss: float
    """Fraction of the captured frames that were not completely received."""
    bit_rate_mbps: float
    """Payload rate of the encoder, Mbit/s."""


def frame_delays(frames: Mapping[str, npt.NDArray[Any]], left_ns: npt.NDArray[Any]) -> IntArray:
    """Return the time from each frame's capture to the arrival of its last packet, ns; −1 for an incomplete frame.

    Args:
        frames: ``captured_ns`` and ``packets`` of each frame, in order.
        left_ns: as for :func:`media_metrics`.
    """
    packets = frames["packets"].astype(np.int64)
    # Each packet is sent once, in order: a frame's packets follow the packets of the frame before it.
    left = np.full(int(packets.sum()), NEVER)
    left[: left_ns.size] = left_ns[: left.size]
    encoded = np.flatnonzero(packets)
    firsts = (np.cumsum(packets) - packets)[encoded]
    last = np.maximum.reduceat(left, firsts) if firsts.size else np.empty(0, dtype=np.uint64)
    whole = last != NEVER
    delays = np.full(packets.size, -1, dtype=np.int64)
    arrived = encoded[whole]
    delays[arrived] = last[whole].astype(np.int64) - frames["captured_ns"][arrived].astype(np.int64)
    return delays


def media_metrics(
    frames: Mapping[str, npt.NDArray[Any]], left_ns: npt.NDArray[Any], life_ns: int
) -> MediaMetrics | None:
    """Return the numbers of a flow's frames; None if the flow has no encoder.

    Args:
        frames: ``captured_ns``, ``packets`` and ``bytes`` of each frame, in order.
        left_ns: times when the flow's packets left the path, in the order of entering; :data:`NEVER` for packets that
            did not leave.
        life_ns: time from the flow's start to its stop.
    """
    if not frames["packets"].size:
        return None
    delays = frame_delays(frames, left_ns)
    delay = delays[delays >= 0]
    return MediaMetrics(
        frame_delay_ms=float(delay.mean()) / 1e6 if delay.size else None,
        frame_delay_p95_ms=percentile_nearest(delay) / 1e6 if delay.size else None,
        frame_loss=1.0 - delay.size / delays.size,
        bit_rate_mbps=float(frames["bytes"].astype(np.int64).sum()) * 8000 / life_ns,
    )


def transfer_metrics(transfers: Mapping[str, npt.NDArray[Any]]) -> dict[str, Any]:
    """Return the numbers of the transfers of a flow's source.

    Args:
        transfers: ``asked_ns`` and ``finished_ns`` of each transfer; :data:`NEVER` for an unfinished transfer.
    """
    finished = transfers["finished_ns"] != NEVER
    took = transfers["finished_ns"][finished].astype(np.int64) - transfers["asked_ns"][finished].astype(np.int64)

    def percentile_ms(percent: int) -> float | None:
        return percentile_nearest(took, percent / 100) / 1e6 if took.size else None

    return {
        "transfers": int(took.size),
        "transfer_ms": float(took.mean()) / 1e6 if took.size else None,
        **{f"transfer_p{percent}_ms": percentile_ms(percent) for percent in (50, 95, 99)},
    }


def recorded_metrics(native: SimResult, capacity_mbps: float | None) -> RunMetrics:
    """Return Pantheon's numbers for a run with recorded packets.

    Args:
        native: The native result.
        capacity_mbps: Average capacity of the link, Mbit/s; None if unknown.
    """
    total, *flows = (flow_metrics(Passed(*of[0]), Passed(*of[1]), of[2]) for of in native.packet_totals())
    return RunMetrics(total, dict(enumerate(flows, 1)), capacity_mbps)


def run_metrics(log: PacketLog) -> RunMetrics:
    """Return Pantheon's numbers for a run from its log; the capacity is computed from the delivery opportunities."""
    total, flows = _log_metrics(log), log.flows
    per_flow = {flow: total if flows == [flow] else _log_metrics(log.of_flow(flow)) for flow in flows}
    known = log.opportunity_ns.size > 0
    return RunMetrics(total, per_flow, Passed.of(log.opportunity_ns, log.opportunity_bytes).mbps if known else None)
