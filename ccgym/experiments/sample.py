"""Input of metrics: the sampled counts of a run over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ccgym.errors import SimulationError
from ccgym.evaluation.capacity import LinkCapacity
from ccgym.evaluation.metrics import percentile_nearest
from ccgym.evaluation.run_record import RunRecord
from ccgym.schemes.flow import FlowSpec

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Sample:
    """Sampled counts since the start of a run. Between samples, they are interpolated linearly."""

    t_s: Floats
    """Sampling times, seconds; the first is 0."""
    payload: tuple[Floats, ...]
    """Per flow: unique payload at the receiver, bytes."""
    sent: tuple[Floats, ...]
    """Per flow: data packets sent, retransmissions included."""
    sent_bytes: tuple[Floats, ...]
    """Per flow: bytes of the IP packets sent, retransmissions included."""
    lost: tuple[Floats, ...]
    """Per flow: data packets that the sender declared lost."""
    arrived: tuple[Floats, ...]
    """Per flow: bytes of the IP packets that arrived, duplicates included."""
    srtt_ms: tuple[Floats, ...]
    """Per flow: smoothed round-trip time, ms; 0 before the first measurement."""
    states: tuple[tuple[str, ...], ...]
    """Per flow: state of its scheme at each time, named as in its specification; empty if the scheme has no states."""
    drops: Floats
    """Packets that the bottleneck's queue dropped."""
    wire_ratio: tuple[float, ...]
    """Per flow: IP bytes of a full packet per byte of its payload."""
    capacity_bits: Floats
    """Bits that the bottleneck could have carried."""
    queue_delay_ms: float
    """Mean wait in the bottleneck's queue over the whole run, per packet, ms."""

    @classmethod
    def of(cls, record: RunRecord, flows: Sequence[FlowSpec] = ()) -> Sample:
        """Return the sample of a run that kept its series.

        Args:
            record: The run.
            flows: Its flows, with the sizes of their packets; by default the sizes of TCP packets.

        Raises:
            SimulationError: The run kept no series, or its path has no bottleneck.
        """
        if record.series is None or record.capacity is None:
            raise SimulationError(
                "path-without-link",
                "a run without series, or over a path without a link",
                expected="a path with a link",
            )
        flows = flows or [FlowSpec(scheme="")] * len(record.flows)
        link = record.counters["link"]
        times_ns = record.series["t_ns"].astype(np.int64)
        return cls(
            t_s=_from_zero(times_ns) / 1e9,
            payload=tuple(_from_zero(part["received_unique_bytes"]) for part in record.series["flows"]),
            sent=tuple(_from_zero(part["sent_packets"]) for part in record.series["flows"]),
            sent_bytes=tuple(_from_zero(part["sent_bytes"]) for part in record.series["flows"]),
            lost=tuple(_from_zero(part["lost_packets"]) for part in record.series["flows"]),
            arrived=tuple(_from_zero(part["received_bytes"]) for part in record.series["flows"]),
            srtt_ms=tuple(_from_zero(part["srtt_ns"]) / 1e6 for part in record.series["flows"]),
            states=tuple(_states(part) for part in record.series["flows"]),
            drops=_from_zero(record.series["link"]["drops"]),
            wire_ratio=tuple(flow.packet_bytes / flow.mss for flow in flows),
            capacity_bits=_bits(record.capacity, times_ns),
            # Little's law: the link's own mean sojourn counts the transmission, too.
            queue_delay_ms=link["mean_queue_packets"] * record.duration_s * 1e3 / max(link["forwarded"], 1),
        )

    def goodput_mbps(self, flow: int, begin_s: float, end_s: float) -> float:
        """Return the unique payload of a flow per time, Mbit/s."""
        return self._grown(self.payload[flow], begin_s, end_s) * 8 / 1e6 / (end_s - begin_s)

    def sent_packets(self, flow: int, begin_s: float, end_s: float) -> float:
        """Return the number of data packets that a flow sent, retransmissions included."""
        return self._grown(self.sent[flow], begin_s, end_s)

    def utilization(self, flows: Sequence[int], begin_s: float, end_s: float) -> float:
        """Return the fraction of capacity that the flows' unique data used, with headers; 0 without capacity."""
        capacity = self._grown(self.capacity_bits, begin_s, end_s)
        bits = sum(self._grown(self.payload[flow], begin_s, end_s) * 8 * self.wire_ratio[flow] for flow in flows)
        return bits / capacity if capacity > 0 else 0.0

    def share(self, flows: Sequence[int], begin_s: float, end_s: float) -> float:
        """Return the fraction of capacity that the flows' packets used, with headers; 0 without capacity."""
        capacity = self._grown(self.capacity_bits, begin_s, end_s)
        bits = sum(self._grown(self.arrived[flow], begin_s, end_s) for flow in flows) * 8
        return bits / capacity if capacity > 0 else 0.0

    def loss(self, flows: Sequence[int], begin_s: float, end_s: float) -> float:
        """Return the packets that the flows' senders declared lost per packet sent; 0 if nothing was sent."""
        sent, lost = (
            sum(self._grown(counts[flow], begin_s, end_s) for flow in flows) for counts in (self.sent, self.lost)
        )
        return lost / sent if sent > 0 else 0.0

    def rtt_ms(self, flow: int, begin_s: float, end_s: float) -> float | None:
        """Return the mean over time of a flow's smoothed round-trip time, ms; None without a measurement."""
        values = self.srtt_ms[flow][(self.t_s > begin_s) & (self.t_s <= end_s)]
        known = values[values > 0]
        return float(known.mean()) if known.size else None

    def rtt_percentile_ms(self, flow: int, percentile: float, begin_s: float, end_s: float) -> float | None:
        """Return a percentile over time of a flow's sRTT, ms, without interpolation; None without a measurement."""
        values = self.srtt_ms[flow][(self.t_s > begin_s) & (self.t_s <= end_s)]
        known = values[values > 0]
        return percentile_nearest(known, percentile / 100) if known.size else None

    def offered_load(self, flows: Sequence[int], begin_s: float, end_s: float) -> float:
        """Return the bits that the flows sent per bit of the link's capacity; 0 without capacity."""
        capacity = self._grown(self.capacity_bits, begin_s, end_s)
        bits = sum(self._grown(self.sent_bytes[flow], begin_s, end_s) for flow in flows) * 8
        return bits / capacity if capacity > 0 else 0.0

    def drop_rate(self, begin_s: float, end_s: float) -> float:
        """Return the packets dropped by the bottleneck per packet sent, of all flows; 0 if nothing was sent."""
        sent = sum(self._grown(count, begin_s, end_s) for count in self.sent)
        return self._grown(self.drops, begin_s, end_s) / sent if sent > 0 else 0.0

    def series(self, width_s: float) -> dict[str, list[float]]:
        """Return series in bins of a width.

        Returns:
            Rate of all flows together and of the link, Mbit/s on the wire; packets that the bottleneck dropped per
            packet sent; mean of the flows' smoothed round-trip times, ms, 0 before the first measurement.
        """
        edges = np.arange(0.0, self.t_s[-1] + 1e-9, width_s)
        on_wire = [one * ratio for one, ratio in zip(self.payload, self.wire_ratio, strict=True)]
        carried = np.diff(np.interp(edges, self.t_s, np.sum(np.asarray(on_wire), axis=0))) * 8
        capacity = np.diff(np.interp(edges, self.t_s, self.capacity_bits))
        sent = np.diff(np.interp(edges, self.t_s, np.sum(np.asarray(self.sent), axis=0)))
        dropped = np.diff(np.interp(edges, self.t_s, self.drops))
        rtts = [self._mean_rtt_ms(begin, end) for begin, end in pairwise(edges)]
        return {
            "t_s": [round(float(at), 3) for at in edges[1:]],
            "rate_mbps": [round(float(bits) / 1e6 / width_s, 4) for bits in carried],
            "capacity_mbps": [round(float(bits) / 1e6 / width_s, 4) for bits in capacity],
            "loss": [round(float(lost / max(count, lost, 1)), 5) for lost, count in zip(dropped, sent, strict=True)],
            "rtt_ms": [round(rtt, 3) for rtt in rtts],
        }

    def _mean_rtt_ms(self, begin_s: float, end_s: float) -> float:
        means = [self.rtt_ms(flow, begin_s, end_s) for flow in range(len(self.srtt_ms))]
        known = [mean for mean in means if mean is not None]
        return sum(known) / len(known) if known else 0.0

    def _grown(self, counts: Floats, begin_s: float, end_s: float) -> float:
        low, high = np.interp((begin_s, end_s), self.t_s, counts)
        return float(high - low)


def _states(series: Mapping[str, Any]) -> tuple[str, ...]:
    if "state" not in series:
        return ()
    names = [series["states"][number] for number in series["state"]]
    return (names[0], *names)


def _from_zero(values: npt.NDArray[np.generic]) -> Floats:
    return np.concatenate(([0.0], values.astype(np.float64)))


def _bits(capacity: LinkCapacity, times_ns: npt.NDArray[np.int64]) -> Floats:
    return capacity.bits_until(np.concatenate(([0], times_ns)).astype(np.int64))
