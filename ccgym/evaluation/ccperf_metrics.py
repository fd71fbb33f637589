"""ccperf's flow, link and network metrics, from sampled series and counters.

Names are ccperf's (https://ccperf.net/metrics; Vielhaus et al., IEEE COMST 2025): a suffix names the layer (l1 link,
l2 queue discipline, l4 transport), ``mean`` is over time, ``cov`` is standard deviation / mean, ``agg`` is the sum over
flows. The formulas are not published completely. These reproduce the tables of experiments #85 and #21 where ccgym's
ns-3 runs of these experiments did. :mod:`ccgym.evaluation.ccperf_names` has the table of all metrics.

Every value has its unit and, if it depends on a bin width, this width. Two widths are used: the sampling interval of
the series (10 ms by default) for window, round-trip time and power, and about four base round-trip times for metrics
of throughput per bin. ccperf's published coefficients of variation imply the second width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ccgym.evaluation.capacity import LinkCapacity, mean_per_bin_mbps
from ccgym.evaluation.ccperf_names import DEFINITIONS

FloatArray = npt.NDArray[np.float64]

UNLIMITED: Final = 2.0**63
"""A window of at least this many bytes means no window: the transport writes 2⁶⁴ − 1."""
BIN_BASE_RTTS: Final = 4
"""Width of a throughput bin in base round-trip times: ccperf's #85 (15 ms) fits bins of 52 to 60 ms."""
PERCENTS: Final = (50, 95, 99)
"""Percentiles of round-trip and completion times."""
GAP_WEIGHT: Final = 1 / 16
"""Weight of a new gap in the moving average of packet spacing. ccperf's weight is not published; this one fits #85."""


@dataclass(frozen=True)
class Metric:
    """One number with its unit and bin width."""

    value: float | None
    """The number; None if it cannot be computed (no samples)."""
    unit: str
    """Its unit; ``1`` for a plain number."""
    bin_s: float | None = None
    """Width of the bins it was computed over, seconds; None if it does not depend on bins."""
    skipped_bins: int = 0
    """Number of bins left out because the value is infinite or undefined (zero throughput or zero capacity)."""


MetricTable = dict[str, Metric]


@dataclass(frozen=True, eq=False)
class CcperfMetrics:
    """The three tables of a ccperf result page."""

    flows: tuple[MetricTable, ...]
    """One table per flow, in order."""
    link: MetricTable
    """The bottleneck, ``btl_forward`` in ccperf."""
    network: MetricTable
    """All flows together, ``net`` in ccperf."""
    links: Mapping[str, MetricTable] = field(default_factory=dict)
    """A table per link, by name, for a path of several links; empty for one link."""

    def scopes(self) -> dict[str, MetricTable]:
        """Return all tables by name: ``flow_1``, …, ``btl_forward``, the tables of several links, ``net``."""
        flows = {f"flow_{number}": table for number, table in enumerate(self.flows, 1)}
        return {**self.links, **flows, "btl_forward": self.link, "net": self.network}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CcperfMetrics) and self.scopes() == other.scopes()


@dataclass(frozen=True)
class FlowInput:
    """Input of the metrics about a flow."""

    series: Mapping[str, npt.NDArray[Any]]
    """Its sampled series, as the native core returns them."""
    counters: Mapping[str, Any]
    """Its entry in the summary."""
    start_ns: int
    stop_ns: int
    """Its stop time; at the latest, the end of the run."""
    base_rtt_ns: int
    """Its round-trip time without any queue."""
    mss: int
    """Payload bytes of a full packet."""
    packet_bytes: int
    """IP bytes of a full packet: payload and header."""
    capacity: LinkCapacity | None
    """Capacity of its bottleneck; None without a bottleneck."""
    link_overhead: int
    """Bytes that its bottleneck charges per packet in addition to the IP length."""
    gaps_ms: Callable[[], FloatArray] | None = None
    """Moving average of the gaps between its packets at each sampling time, with :data:`GAP_WEIGHT`; NaN before the
    second packet. None if packets were not recorded."""
    transfers: Mapping[str, Any] | None = None
    """Numbers of its transfers, if it has several (:func:`~ccgym.evaluation.metrics.transfer_metrics`)."""


@dataclass(frozen=True)
class RunInput:
    """Input of the metrics about a run."""

    t_ns: npt.NDArray[Any]
    """Sampling times k·step, k = 1…n."""
    step_ns: int
    duration_ns: int
    flows: Sequence[FlowInput]
    link_counters: Mapping[str, Any] | None
    """The ``link`` entry of the summary; None if the path has no link."""
    links: Mapping[str, Mapping[str, Any]]
    """Such an entry per link, by name, for a path of several links; empty for one link."""
    capacity: LinkCapacity | None
    """Capacity of the common bottleneck of all flows; None without one."""

    @cached_property
    def times_ns(self) -> npt.NDArray[np.int64]:
        """The sampling times as signed numbers."""
        return self.t_ns.astype(np.int64)

    @cached_property
    def bin_steps(self) -> int:
        """Sampling steps per throughput bin."""
        base_rtt = min((flow.base_rtt_ns for flow in self.flows), default=self.step_ns)
        return max(1, round(BIN_BASE_RTTS * base_rtt / self.step_ns))

    @cached_property
    def samples(self) -> tuple[Samples, ...]:
        """The samples of each flow."""
        return tuple(Samples(self.times_ns, self.step_ns, self.bin_steps, flow) for flow in self.flows)


class _Value(NamedTuple):
    """A metric without its unit."""

    value: float | None
    bin_s: float | None = None
    skipped_bins: int = 0


@dataclass(frozen=True)
class Samples:
    """One flow's samples while it was active, and its throughput in bins."""

    times_ns: npt.NDArray[np.int64]
    step_ns: int
    bin_steps: int
    flow: FlowInput

    @cached_property
    def active(self) -> slice:
        """Indices of the samples while the flow was active."""
        first, last = np.searchsorted(self.times_ns, (self.flow.start_ns, self.flow.stop_ns), side="right")
        return slice(int(first), int(last))

    def _column(self, name: str) -> FloatArray:
        return np.asarray(self.flow.series[name][self.active], dtype=np.float64)

    @cached_property
    def in_flight(self) -> FloatArray:
        """Packets in flight."""
        return self._column("in_flight_bytes") / self.flow.packet_bytes

    @cached_property
    def srtt_s(self) -> FloatArray:
        """Smoothed round-trip time; 0 before the first measurement."""
        return self._column("srtt_ns") / 1e9

    @cached_property
    def mean_cwnd(self) -> float | None:
        """Mean window, packets; None for schemes that set only a rate."""
        cwnd = self._column("cwnd_bytes") / self.flow.packet_bytes
        return _mean(cwnd[cwnd < UNLIMITED / self.flow.packet_bytes])

    @cached_property
    def mean_in_flight(self) -> float | None:
        """Mean of the packets in flight."""
        return _mean(self.in_flight)

    @cached_property
    def srtts_ms(self) -> FloatArray:
        """Measured smoothed round-trip times, ms."""
        return self.srtt_s[self.srtt_s > 0] * 1e3

    @cached_property
    def mean_srtt_ms(self) -> float | None:
        """Mean of the smoothed round-trip times, ms."""
        return _mean(self.srtts_ms)

    @cached_property
    def _read_bytes(self) -> FloatArray:
        # Bytes that the application can read: an arriving retransmission releases the data that waited for it.
        return self.flow.series["read_bytes"].astype(np.float64)

    @property
    def step_throughput(self) -> FloatArray:
        """Throughput of each step, Mbit/s."""
        return np.asarray((np.diff(self._read_bytes, prepend=0.0) * 8 * 1000 / self.step_ns)[self.active])

    @cached_property
    def bin_edges_ns(self) -> npt.NDArray[np.int64]:
        """Edges of the bins, on a grid common to all flows, so that fairness compares the same instants."""
        steps = self.bin_steps
        return np.arange(self.times_ns.size // steps + 1, dtype=np.int64) * steps * self.step_ns

    @cached_property
    def bin_throughput(self) -> FloatArray:
        """Throughput of each bin, Mbit/s."""
        steps = self.bin_steps
        cumulative = np.concatenate(([0.0], self._read_bytes))[: self._read_bytes.size // steps * steps + 1 : steps]
        return np.diff(cumulative) * 8 * 1000 / (steps * self.step_ns)


class MeasuredCcperf(CcperfMetrics):
    """The tables of a run in memory, made when the first of them is read."""

    def __init__(self, run: RunInput) -> None:
        vars(self)["_run"] = run

    def __getattr__(self, name: str) -> Any:
        # Two threads may run this at the same time: both make the same tables.
        run = vars(self).get("_run")
        if run is not None:
            vars(self).update(vars(ccperf_metrics(run)), _run=None)
        try:
            return vars(self)[name]
        except KeyError:
            raise AttributeError(name) from None


def ccperf_metrics(run: RunInput) -> CcperfMetrics:
    """Return all tables of a run."""
    return CcperfMetrics(
        flows=tuple(_flow_table(run, flow, part) for flow, part in zip(run.flows, run.samples, strict=True)),
        link=_link_table(run, run.link_counters),
        network=_network_table(run, run.samples),
        links={name: _link_table(run, counters) for name, counters in run.links.items()},
    )


def _active_bins(flow: FlowInput, part: Samples) -> npt.NDArray[np.bool_]:
    """Return which bins are completely within the flow's life."""
    edges = part.bin_edges_ns
    return np.asarray((edges[:-1] >= flow.start_ns) & (edges[1:] <= flow.stop_ns))


def _table(values: Mapping[str, _Value]) -> MetricTable:
    return {name: Metric(one.value, DEFINITIONS[name].unit, *one[1:]) for name, one in sorted(values.items())}


def _mean(values: FloatArray) -> float | None:
    return float(values.mean()) if values.size else None


def _cov(values: FloatArray) -> float | None:
    mean = _mean(values)
    return float(values.std()) / mean if mean else None


def _flow_table(run: RunInput, flow: FlowInput, part: Samples) -> MetricTable:
    seconds = (flow.stop_ns - flow.start_ns) / 1e9
    counters = flow.counters
    payload_share = flow.mss / flow.packet_bytes
    step_s = run.step_ns / 1e9
    bin_s = run.bin_steps * step_s
    bins = part.bin_throughput[_active_bins(flow, part)]
    flowing = bins[bins > 0]
    timed = part.srtt_s > 0
    srtt_ms = part.mean_srtt_ms
    recoveries = int(counters["recoveries"])
    completion = counters["finish_ns"] if counters["finish_ns"] is not None else flow.stop_ns

    def mbps(wire_or_payload_bytes: float) -> _Value:
        return _Value(wire_or_payload_bytes * 8 / 1e6 / seconds if seconds > 0 else None)

    table = {
        "cov_in_flight_l4": _Value(_cov(part.in_flight), step_s),
        "cov_throughput_l4": _Value(_cov(bins), bin_s),
        "flow_completion_time_l4": _Value((completion - flow.start_ns) / 1e9),
        "mean_cwnd_l4": _Value(part.mean_cwnd, step_s),
        "mean_delivery_rate_l4": mbps(counters["acked_bytes"] * payload_share),
        "mean_est_qdelay_l4": _Value(None if srtt_ms is None else srtt_ms - flow.base_rtt_ns / 1e6, step_s),
        "mean_in_flight_l4": _Value(part.mean_in_flight, step_s),
        "mean_network_power_l4": _Value(_mean(part.step_throughput[timed] / part.srtt_s[timed]), step_s),
        "mean_recovery_time_l4": _Value(counters["recovery_ns"] / recoveries / 1e6 if recoveries else 0.0),
        "mean_sending_rate_l4": mbps(counters["sent_bytes"] * payload_share),
        "mean_srtt_l4": _Value(srtt_ms, step_s),
        "mean_throughput_l4": mbps(counters["received_unique_bytes"]),
        "mean_utility_mpdf_l4": _Value(_mean(-1 / flowing), bin_s, int(bins.size - flowing.size)),
        "mean_utility_pf_l4": _Value(_mean(np.log(flowing)), bin_s, int(bins.size - flowing.size)),
        "mean_utilization_bdp_l4": _utilization_bdp(run, flow, part),
        "mean_utilization_bw_l4": _utilization_bw(
            run, flow.capacity, part.bin_edges_ns, part.bin_throughput, _active_bins(flow, part)
        ),
        "total_retransmissions_l4": _Value(float(counters["retransmissions"])),
        "total_rtos_l4": _Value(float(counters["rtos"])),
    }
    srtts_ms = part.srtts_ms
    percentiles = np.percentile(srtts_ms, PERCENTS).tolist() if srtts_ms.size else [None] * len(PERCENTS)
    for percent, found in zip(PERCENTS, percentiles, strict=True):
        table[f"p{percent}_srtt_l4"] = _Value(found, step_s)
    if flow.gaps_ms is not None:
        # Not a mean over packets, which would be the mean gap: 0.08 ms in #21, where ccperf has 0.27 ms.
        gaps = flow.gaps_ms()[run.times_ns <= flow.stop_ns]
        table["mean_idt_ewma_l4"] = _Value(_mean(gaps[~np.isnan(gaps)]), step_s)
    if flow.transfers is not None:
        table["mean_completion_time_l7"] = _Value(flow.transfers["transfer_ms"])
        for percent in PERCENTS:
            table[f"p{percent}_completion_time_l7"] = _Value(flow.transfers[f"transfer_p{percent}_ms"])
    if (application := counters.get("application")) is not None:
        table["mean_sending_rate_l7"] = mbps(application["written_bytes"])
        table["mean_throughput_l7"] = mbps(application["read_bytes"])
        table["mean_one_way_delay_l7"] = _Value(application["mean_delay_ms"])
    return _table(table)


def _utilization_bw(
    run: RunInput,
    capacity: LinkCapacity | None,
    edges_ns: npt.NDArray[np.int64],
    throughput: FloatArray,
    bins: npt.NDArray[np.bool_],
) -> _Value:
    """Return the mean over bins of payload throughput / momentary bandwidth."""
    bin_s = run.bin_steps * run.step_ns / 1e9
    if capacity is None or edges_ns.size < 2:
        return _Value(None, bin_s)
    bandwidth = mean_per_bin_mbps(capacity, edges_ns)[bins]
    usable = bandwidth > 0
    return _Value(_mean(throughput[bins][usable] / bandwidth[usable]), bin_s, int((~usable).sum()))


def _bdp_segments(run: RunInput, flow: FlowInput) -> FloatArray | None:
    """Return the bandwidth-delay product at each sampling time, in segments of payload.

    BDP = bw·rtt / (8·packet bytes) · mss / (packet bytes + overhead of the link). The last factor is in ccperf's
    formula, as its published values imply (1448/1502).
    """
    if flow.capacity is None:
        return None
    edges = np.concatenate(([0], run.times_ns))
    # A trace's opportunities are at whole milliseconds: smooth them over one round-trip time.
    window = max(1, round(flow.base_rtt_ns / run.step_ns))
    ahead = np.minimum(np.arange(window, edges.size + window - 1), edges.size - 1)
    behind = np.maximum(ahead - window, 0)
    bits = flow.capacity.bits_until(edges)
    bandwidth_bps = (bits[ahead] - bits[behind]) * 1e9 / (edges[ahead] - edges[behind])
    factor = flow.mss / (flow.packet_bytes + flow.link_overhead)
    return np.asarray(bandwidth_bps * flow.base_rtt_ns / 1e9 / (8 * flow.packet_bytes) * factor)


def _utilization_bdp(run: RunInput, flow: FlowInput, part: Samples) -> _Value:
    step_s = run.step_ns / 1e9
    bdp = _bdp_segments(run, flow)
    if bdp is None:
        return _Value(None, step_s)
    bdp = bdp[part.active]
    usable = bdp > 0
    return _Value(_mean(part.in_flight[usable] / bdp[usable]), step_s, int((~usable).sum()))


def _link_table(run: RunInput, counters: Mapping[str, Any] | None) -> MetricTable:
    if counters is None:
        return {}
    seconds = run.duration_ns / 1e9
    # Little's law. The link's own mean sojourn time also includes transmission and a device buffer below the queue.
    wait_ms = counters["mean_queue_packets"] * run.duration_ns / 1e6 / max(counters["forwarded"], 1)
    values = {
        "mean_qdisc_delay_l2": _Value(wait_ms),
        "mean_qdisc_length_l2": _Value(float(counters["mean_queue_packets"])),
        "mean_sending_rate_l1": _Value(counters["forwarded_bytes"] * 8 / 1e6 / seconds),
        "total_qdisc_drops_l2": _Value(float(counters["drops"])),
    }
    return _table(values)


def _network_table(run: RunInput, samples: Sequence[Samples]) -> MetricTable:
    step_s = run.step_ns / 1e9
    bin_s = run.bin_steps * step_s
    count = int(run.t_ns.size)
    in_flight = np.zeros(count)
    bdp_share = np.zeros(count)
    bdp_known = all(flow.capacity is not None for flow in run.flows)
    for flow, part in zip(run.flows, samples, strict=True):
        in_flight[part.active] += part.in_flight
        bdp = _bdp_segments(run, flow)
        if bdp is not None:
            bdp = bdp[part.active]
            usable = bdp > 0
            bdp_share[part.active][usable] += part.in_flight[usable] / bdp[usable]
    rates = np.array([part.bin_throughput for part in samples])
    alive = np.array([_active_bins(flow, part) for flow, part in zip(run.flows, samples, strict=True)])
    if not rates.size:
        return {}
    edges = samples[0].bin_edges_ns
    total = rates.sum(axis=0)
    # A flow that began or ended within a bin does not count in this bin: fairness is computed over the other flows.
    kept = np.where(alive, rates, 0.0)
    anyone = np.asarray(alive.any(axis=0))
    flowing = alive & (rates > 0)
    logs = np.where(flowing, np.log(np.where(flowing, rates, 1.0)), 0.0)
    inverses = np.where(flowing, -1 / np.where(flowing, rates, 1.0), 0.0)
    silent = int((alive & (rates <= 0)).any(axis=0).sum())
    used = kept.sum(axis=0) > 0
    skipped = int(anyone.sum() - used.sum())
    shared = kept[:, used]
    width = alive[:, used].sum(axis=0)
    jain = shared.sum(axis=0) ** 2 / (width * (shared**2).sum(axis=0))
    share = shared / shared.sum(axis=0)
    entropy = -(share * np.log(np.where(share > 0, share, 1.0))).sum(axis=0)
    product = np.where(alive[:, anyone], rates[:, anyone], 1.0).prod(axis=0)
    crowd = width > 1
    seconds = run.duration_ns / 1e9
    payload = sum(int(flow.counters["received_unique_bytes"]) for flow in run.flows)
    values = {
        "mean_agg_in_flight_l4": _Value(_mean(in_flight), step_s),
        "mean_agg_throughput_l4": _Value(payload * 8 / 1e6 / seconds),
        "mean_agg_utility_mpdf_l4": _Value(_mean(inverses.sum(axis=0)[anyone]), bin_s, silent),
        "mean_agg_utility_pf_l4": _Value(_mean(logs.sum(axis=0)[anyone]), bin_s, silent),
        "mean_agg_utilization_bdp_l4": _Value(_mean(bdp_share) if bdp_known else None, step_s),
        "mean_agg_utilization_bw_l4": _utilization_bw(run, run.capacity, edges, total, anyone),
        "mean_entropy_fairness_throughput_l4": _Value(_mean(entropy), bin_s, skipped),
        "mean_jains_fairness_throughput_l4": _Value(_mean(jain), bin_s, skipped),
        "mean_normalized_entropy_fairness_throughput_l4": _Value(
            _mean(entropy[crowd] / np.log(width[crowd])), bin_s, skipped
        ),
        "mean_product_fairness_throughput_l4": _Value(_mean(product), bin_s),
        "mean_geometric_fairness_throughput_l4": _Value(_mean(product ** (1 / alive[:, anyone].sum(axis=0))), bin_s),
    }
    return _table(values)
