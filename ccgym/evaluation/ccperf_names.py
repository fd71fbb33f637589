"""ccperf's metrics and similar further metrics by name: layer, unit, formula, and which values are better.

``docs/reference/metrics.md`` and the tables of experiments and pages are generated from this table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Better: TypeAlias = Literal["higher", "lower", "one", "neither"]
"""Which values of a metric are better: high, low, or near 1; ``neither`` for metrics that only describe."""

Scope: TypeAlias = Literal["flow", "link", "net"]
"""Scope of a metric: a flow, a link, or all flows together."""


@dataclass(frozen=True)
class Definition:
    """A metric of a scope."""

    scope: Scope
    name: str
    unit: str
    """``1`` for a plain number."""
    better: Better
    formula: str
    """Formula in Markdown. Means over time are over the life of the flow."""
    ours: bool = False
    """Whether it is a metric of ccgym, not of ccperf."""
    needs_packets: bool = False
    """Whether it requires recorded packets."""

    @property
    def layer(self) -> str:
        """Layer of the measurement: ``l1`` the link's wire, ``l2`` its queue, ``l4`` transport, ``l7`` application."""
        return self.name.rpartition("_")[2]


def _definitions() -> Iterator[Definition]:
    def flow(name: str, unit: str, better: Better, formula: str, **more: bool) -> Definition:
        return Definition("flow", name, unit, better, formula, **more)

    def link(name: str, unit: str, better: Better, formula: str) -> Definition:
        return Definition("link", name, unit, better, formula)

    def net(name: str, unit: str, better: Better, formula: str, **more: bool) -> Definition:
        return Definition("net", name, unit, better, formula, **more)

    yield flow("mean_throughput_l4", "Mbit/s", "higher", "unique payload at the receiver / life of the flow")
    yield flow("mean_sending_rate_l4", "Mbit/s", "neither", "payload sent, retransmissions included / life")
    yield flow("mean_delivery_rate_l4", "Mbit/s", "higher", "payload acknowledged / life")
    yield flow("mean_cwnd_l4", "segments", "neither", "time mean of the window")
    yield flow("mean_in_flight_l4", "segments", "neither", "time mean of the unacknowledged data")
    yield flow("cov_in_flight_l4", "1", "lower", "of the samples")
    yield flow("cov_throughput_l4", "1", "lower", "over throughput bins")
    yield flow("mean_srtt_l4", "ms", "lower", "time mean of the smoothed round-trip time from its first sample")
    for part in (50, 95, 99):
        yield flow(f"p{part}_srtt_l4", "ms", "lower", f"{part}th percentile of the same samples", ours=True)
    yield flow("mean_est_qdelay_l4", "ms", "lower", "`mean_srtt_l4` − base round-trip time of the flow")
    yield flow(
        "mean_network_power_l4", "Mbit/s per s", "higher",
        "mean over samples of the rate of readable payload / smoothed round-trip time (not the ratio of means)",
    )  # fmt: skip
    yield flow("mean_utility_pf_l4", "ln(Mbit/s)", "higher", "mean over bins of ln(throughput)")
    yield flow("mean_utility_mpdf_l4", "(Mbit/s)^-1", "higher", "mean over bins of −1/throughput")
    yield flow("mean_utilization_bw_l4", "1", "higher", "mean over bins of throughput / bandwidth of that bin")
    yield flow(
        "mean_utilization_bdp_l4", "1", "one",
        "time mean of in flight / BDP; BDP = bandwidth · base RTT / (8 · packet) · MSS / (packet + link overhead)",
    )  # fmt: skip
    yield flow(
        "mean_idt_ewma_l4", "ms", "neither",
        "time mean of the moving average of the gaps between sent packets, each gap with weight 1/16",
        needs_packets=True,
    )  # fmt: skip
    yield flow(
        "mean_recovery_time_l4", "ms", "lower", "time in fast recovery / number of recoveries; 0 if there are none"
    )  # fmt: skip
    yield flow("total_retransmissions_l4", "packets", "lower", "data packets sent again")
    yield flow("total_rtos_l4", "timeouts", "lower", "retransmission timeouts")
    yield flow(
        "flow_completion_time_l4", "s", "lower",
        "last ACK − start, for a finished transfer; otherwise the life of the flow",
    )  # fmt: skip
    yield flow(
        "mean_throughput_l7", "Mbit/s", "higher", "payload that the application read / life; with a `send_buffer`"
    )
    yield flow(
        "mean_sending_rate_l7", "Mbit/s", "neither", "payload that the application wrote / life; with a `send_buffer`"
    )  # fmt: skip
    yield flow(
        "mean_one_way_delay_l7", "ms", "lower",
        "time mean of the delay from write to read; with a `send_buffer`, which the application keeps full",
    )  # fmt: skip
    yield flow(
        "mean_completion_time_l7", "ms", "lower",
        "for a source with several transfers: mean time from request or arrival to the last ACK",
        ours=True,
    )  # fmt: skip
    for part in (50, 95, 99):
        yield flow(f"p{part}_completion_time_l7", "ms", "lower", f"{part}th percentile of these times", ours=True)

    yield link("mean_sending_rate_l1", "Mbit/s", "higher", "wire bits forwarded, overhead included / run")
    yield link("mean_qdisc_length_l2", "packets", "lower", "time mean of the queue")
    yield link(
        "mean_qdisc_delay_l2", "ms", "lower",
        "mean time in the queue per packet (Little's law: mean length · run / packets)",
    )  # fmt: skip
    yield link("total_qdisc_drops_l2", "packets", "lower", "packets dropped")

    yield net("mean_agg_throughput_l4", "Mbit/s", "higher", "sum over flows of unique payload / run")
    yield net("mean_agg_in_flight_l4", "segments", "neither", "time mean of the sum over flows")
    yield net("mean_agg_utilization_bw_l4", "1", "higher", "as `mean_utilization_bw_l4`, for the sum over flows")
    yield net("mean_agg_utilization_bdp_l4", "1", "one", "as `mean_utilization_bdp_l4`, for the sum over flows")
    yield net("mean_agg_utility_pf_l4", "ln(Mbit/s)", "higher", "mean over bins of the sum over flows")
    yield net("mean_agg_utility_mpdf_l4", "(Mbit/s)^-1", "higher", "mean over bins of the sum over flows")
    yield net(
        "mean_jains_fairness_throughput_l4", "1", "higher",
        "mean over bins of (Σx)² / (K·Σx²), K the number of active flows in that bin",
    )  # fmt: skip
    yield net(
        "mean_entropy_fairness_throughput_l4", "nat", "higher",
        "mean over bins of −Σ p·ln p with p = x/Σx; ln K when equal",
    )  # fmt: skip
    yield net("mean_product_fairness_throughput_l4", "(Mbit/s)^K", "higher", "mean over bins of Πx")
    yield net(
        "mean_normalized_entropy_fairness_throughput_l4", "1", "higher",
        "entropy / ln K: comparable between numbers of flows", ours=True,
    )  # fmt: skip
    yield net("mean_geometric_fairness_throughput_l4", "Mbit/s", "higher", "mean over bins of (Πx)^(1/K)", ours=True)


DEFINITIONS: Final[Mapping[str, Definition]] = {one.name: one for one in _definitions()}
"""Metrics by name: of flows first, then of links, then of all flows together."""
