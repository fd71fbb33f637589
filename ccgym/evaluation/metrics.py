"""Pantheon's metrics: throughput, 95th-percentile one-way delay, loss, capacity and utilization.

They are computed here only, for packets of the simulator, of real paths, and of logs that Pantheon itself wrote. The
definitions are those of Pantheon's ``src/analysis/tunnel_graph.py`` (StanfordSNR/pantheon @23e738c):

============================  =========================================================================================
throughput                    bits that left / (last departure − first departure); 0 when there is one departure instant
ingress                       the same over entering packets
95th-percentile delay         ascending one-way delays, element round(0.95·(n−1)), ties to even; never interpolated
loss                          1 − bytes that left / bytes that entered; what is in flight at the end counts as lost
total throughput              all bits that left / (latest − first departure of any flow): not the sum over flows
total delay and loss          over all packets, pooled
capacity                      bits of the link's delivery opportunities / (last − first opportunity)
utilization                   total throughput / capacity; may exceed 1
frame delay                   from a frame's capture to the departure of its last packet, of frames of which all packets
                              left; mean, and the 95th percentile as above
bit rate                      payload bits of all encoded frames / life of the flow
frame loss                    frames that were skipped, or of which a packet never left / frames captured
validity                      a run is ignored if its departures span less than 0.8 of the asked run time, or if of one
                              of its flows nothing left, or nothing entered
============================  =========================================================================================

Sizes are bytes of IP packets at the point where Pantheon's tunnel would see them; Mbit are 10⁶ bits.
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
"""The departure time by which the native core says that a packet was lost or still in flight at the end."""

MIN_RUN_FRACTION: Final = 0.8
"""Pantheon ignores runs whose departures span less than this fraction of the asked run time."""

DELAY_PERCENTILE: Final = 0.95
"""The delay percentile of Pantheon's tables, as a fraction."""


def _empty() -> IntArray:
    return np.empty(0, dtype=np.int64)


def _of_flow(flow: int, order: IntArray, flows: IntArray) -> IntArray:
    """The places of a flow's packets, ascending."""
    first, last = np.searchsorted(flows, (flow, flow + 1))
    return order[first:last]


def _whole_microseconds(ns: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    return np.asarray((ns + np.uint64(500)) // np.uint64(1000) * np.uint64(1000))


@dataclass(frozen=True)
class PacketLog:
    """What entered and what left a path in one direction, and when.

    Entering and leaving packets are two independent lists because Pantheon's merged logs do not say which departure
    belongs to which arrival. Flows are numbered from 1, as in those logs.
    """

    arrival_ns: IntArray
    """When packets entered the path, nanoseconds."""
    arrival_bytes: IntArray
    """Their sizes, bytes."""
    arrival_flow: IntArray
    """Their flows, from 1."""
    departure_ns: IntArray
    """When packets left the path, nanoseconds."""
    departure_bytes: IntArray
    """Their sizes, bytes."""
    departure_flow: IntArray
    """Their flows, from 1."""
    delay_ns: IntArray
    """One-way delay of each departure, nanoseconds: propagation and queueing together."""
    opportunity_ns: IntArray = field(default_factory=_empty)
    """Delivery opportunities of the bottleneck, nanoseconds; empty where they are unknown."""
    opportunity_bytes: IntArray = field(default_factory=_empty)
    """Bytes of each opportunity."""
    flow_count: int = 0
    """How many flows there are; a flow that never sent leaves no packet behind."""

    @classmethod
    def from_packets(cls, packets: Mapping[str, npt.NDArray[Any]], flow_count: int = 0) -> PacketLog:
        """From the native core's arrays ``entered_ns``, ``left_ns``, ``size``, ``flow`` (flows from 0).

        Times are rounded to the microseconds that Pantheon's tunnel counts in, as in our packet logs: numbers are the
        same to the last digit, whether they are computed here or from logs.
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
        """The flow numbers, ascending: 1…flow_count, or those that occur in the packets when the count is unknown."""
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
        """Of arrivals and departures: places in order of the flows, and the flows in that order.

        With many flows a search through all packets for each of them would take minutes.
        """
        orders = (np.argsort(flows, kind="stable") for flows in (self.arrival_flow, self.departure_flow))
        both = zip(orders, (self.arrival_flow, self.departure_flow), strict=True)
        return tuple((order, flows[order]) for order, flows in both)

    def of_flow(self, flow: int) -> PacketLog:
        """The packets of one flow (numbered from 1), without the link's opportunities."""
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
    """Rate at which packets entered the path, Mbit/s; None, as the next three, where only rounded numbers are left."""
    delay_p95_ms: float | None
    """95th percentile of the per-packet one-way delay, ms; None when nothing left the path."""
    loss: float | None
    """Fraction of the entered bytes that never left; None when nothing entered."""
    span_s: float | None
    """Seconds from the first to the last departure."""
    packets_in: int | None
    packets_out: int | None

    @classmethod
    def rounded(
        cls, throughput_mbps: float = 0.0, delay_p95_ms: float | None = None, loss: float | None = None
    ) -> PantheonMetrics:
        """What a statistics file keeps of a flow."""
        return cls(throughput_mbps, None, delay_p95_ms, loss, None, None, None)


@dataclass(frozen=True)
class RunMetrics:
    """Pantheon's numbers for one run: all flows together, each flow, and the link."""

    total: PantheonMetrics
    """All packets pooled."""
    flows: dict[int, PantheonMetrics]
    """Per flow, numbered from 1."""
    capacity_mbps: float | None
    """Average capacity of the bottleneck over the run, Mbit/s; None where it is unknown."""

    @property
    def utilization(self) -> float | None:
        """Total throughput / capacity, a fraction that may exceed 1; None where the capacity is unknown."""
        if not self.capacity_mbps:
            return None
        return self.total.throughput_mbps / self.capacity_mbps

    def invalid_reason(self, runtime_s: float) -> str | None:
        """Why Pantheon would ignore this run, or None if it counts.

        Args:
            runtime_s: the run time that was asked for, seconds.
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
                f"{runtime_s:g} s that were asked for"
            )
        return None


def percentile_nearest(values: npt.NDArray[Any], fraction: float = DELAY_PERCENTILE) -> float:
    """The element at rank ``fraction·(n−1)`` of the ascending values, rounded half to even; a real element.

    This is numpy's percentile with ``method="nearest"``, in linear time. ``values`` must not be empty.
    """
    rank = int(np.rint(fraction * (values.size - 1)))
    return float(np.partition(values, rank)[rank])


class Passed(NamedTuple):
    """Packets that passed one end of the path."""

    packets: int
    """How many."""
    bytes: int
    """Bytes of IP packets."""
    first_ns: int
    """Time of the first, nanoseconds."""
    last_ns: int
    """Time of the last, nanoseconds."""

    @classmethod
    def of(cls, times_ns: IntArray, sizes: IntArray) -> Passed:
        """Of packets that passed at these times."""
        first, last = (int(times_ns.min()), int(times_ns.max())) if times_ns.size else (0, 0)
        return cls(int(times_ns.size), int(sizes.sum()), first, last)

    @property
    def span_ns(self) -> int:
        """From the first to the last, nanoseconds."""
        return self.last_ns - self.first_ns

    @property
    def mbps(self) -> float:
        """Bits over the span, Mbit/s; 0 when there are fewer than two instants."""
        return self.bytes * 8 * 1000 / self.span_ns if self.span_ns else 0.0


def flow_metrics(entered: Passed, left: Passed, delay_p95_ns: float | None) -> PantheonMetrics:
    """Pantheon's numbers, from totals over packets."""
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
    """Mean delay of the frames that arrived whole, ms; None if none did."""
    frame_delay_p95_ms: float | None
    """Its 95th percentile, ms."""
    frame_loss: float
    """Fraction of the captured frames that did not arrive whole."""
    bit_rate_mbps: float
    """Payload rate of the encoder, Mbit/s."""


def frame_delays(frames: Mapping[str, npt.NDArray[Any]], left_ns: npt.NDArray[Any]) -> IntArray:
    """Time from the capture of each frame to the arrival of its last packet, ns; −1 for one that did not arrive whole.

    Args:
        frames: ``captured_ns`` and ``packets`` of each frame, in order.
        left_ns: as :func:`media_metrics` takes it.
    """
    packets = frames["packets"].astype(np.int64)
    # Packets are sent once each and in order: those of a frame follow those of the frame before it.
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
    """Numbers of the frames of a flow; None if it has no encoder.

    Args:
        frames: ``captured_ns``, ``packets`` and ``bytes`` of each frame, in order.
        left_ns: when the flow's packets left the path, in the order in which they entered it; :data:`NEVER` for those
            that did not.
        life_ns: from the flow's start to its stop.
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
    """Numbers of the transfers of a flow's source.

    Args:
        transfers: ``asked_ns`` and ``finished_ns`` of each; :data:`NEVER` for one that did not finish.
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
    """Pantheon's numbers for a run whose packets were recorded.

    Args:
        native: What the native core recorded.
        capacity_mbps: Average capacity of the link, Mbit/s, where it is known.
    """
    total, *flows = (flow_metrics(Passed(*of[0]), Passed(*of[1]), of[2]) for of in native.packet_totals())
    return RunMetrics(total, dict(enumerate(flows, 1)), capacity_mbps)


def run_metrics(log: PacketLog) -> RunMetrics:
    """Pantheon's numbers for a run that is known from its log; the capacity is that of the delivery opportunities."""
    total, flows = _log_metrics(log), log.flows
    per_flow = {flow: total if flows == [flow] else _log_metrics(log.of_flow(flow)) for flow in flows}
    known = log.opportunity_ns.size > 0
    return RunMetrics(total, per_flow, Passed.of(log.opportunity_ns, log.opportunity_bytes).mbps if known else None)
