"""ccperf's metrics on series whose means can be worked out by hand, and on its two published experiments."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from ccgym.evaluation.capacity import RateCapacity
from ccgym.evaluation.ccperf_metrics import CcperfMetrics, FlowInput, RunInput, ccperf_metrics

STEP = 10_000_000
SECOND = 1_000_000_000


def flow(rates_mbps: list[float], *, start_s: float = 0.0, stop_s: float = 6.0, **counters: Any) -> FlowInput:
    """A flow of 6 s that receives at a list of rates, each for an equal part of the run; window 20, RTT 30 ms."""
    count = 600
    rate = np.repeat(rates_mbps, count // len(rates_mbps))
    times = np.arange(1, count + 1) * STEP
    active = (times > start_s * SECOND) & (times <= stop_s * SECOND)
    received = np.cumsum(np.where(active, rate * 1e6 / 8 * STEP / SECOND, 0.0))
    full = np.full(count, 1500.0)
    return FlowInput(
        series={
            "read_bytes": received,
            "cwnd_bytes": full * 20,
            "in_flight_bytes": full * 16,
            "srtt_ns": np.where(times > SECOND // 10, 30_000_000, 0),
        },
        counters={
            "received_unique_bytes": int(received[-1]),
            "acked_bytes": int(received[-1] * 1500 / 1448),
            "sent_bytes": int(received[-1] * 1500 / 1448 * 1.1),
            "recoveries": 2,
            "recovery_ns": 60_000_000,
            "retransmissions": 7,
            "rtos": 1,
            "finish_ns": None,
            **counters,
        },
        start_ns=round(start_s * SECOND),
        stop_ns=round(stop_s * SECOND),
        base_rtt_ns=15_000_000,
        mss=1448,
        packet_bytes=1500,
        capacity=None,
        link_overhead=2,
    )


def tables(*flows: FlowInput, rate_mbps: float = 32.0) -> CcperfMetrics:
    capacity = RateCapacity(np.array([0]), np.array([rate_mbps * 1e6]))
    return ccperf_metrics(
        RunInput(
            t_ns=np.arange(1, 601) * STEP,
            step_ns=STEP,
            duration_ns=6 * SECOND,
            flows=[replace(flow, capacity=capacity) for flow in flows],
            link_counters={
                "drops": 135,
                "forwarded": 4_000,
                "forwarded_bytes": 6_000_000,
                "mean_queue_packets": 21.5,
                "mean_sojourn_ms": 8.2,
            },
            links={},
            capacity=capacity,
        )
    )


def test_flow_table_of_a_constant_flow() -> None:
    table = tables(flow([12.0])).flows[0]
    expected = {
        "mean_throughput_l4": 12.0,
        "mean_delivery_rate_l4": 12.0,
        "mean_sending_rate_l4": 13.2,
        "mean_cwnd_l4": 20.0,
        "mean_in_flight_l4": 16.0,
        "cov_in_flight_l4": 0.0,
        "cov_throughput_l4": 0.0,
        "mean_srtt_l4": 30.0,
        "p50_srtt_l4": 30.0,
        "p95_srtt_l4": 30.0,
        "p99_srtt_l4": 30.0,
        "mean_est_qdelay_l4": 15.0,
        "mean_network_power_l4": 12.0 / 0.030,
        "mean_utility_pf_l4": math.log(12.0),
        "mean_utility_mpdf_l4": -1 / 12.0,
        "mean_utilization_bw_l4": 12.0 / 32.0,
        # BDP = 32e6 · 0.015 / (8 · 1500) = 40 packets, times 1448/1502.
        "mean_utilization_bdp_l4": 16.0 / (40 * 1448 / 1502),
        "mean_recovery_time_l4": 30.0,
        "total_retransmissions_l4": 7.0,
        "total_rtos_l4": 1.0,
        "flow_completion_time_l4": 6.0,
    }
    assert {name: metric.value for name, metric in table.items()} == pytest.approx(expected, rel=1e-6)


def test_no_window_is_no_huge_window() -> None:
    made = flow([12.0])
    made.series["cwnd_bytes"][:100] = 2**64 - 1
    assert tables(made).flows[0]["mean_cwnd_l4"].value == pytest.approx(20.0)
    made.series["cwnd_bytes"][:] = 2**64 - 1
    assert tables(made).flows[0]["mean_cwnd_l4"].value is None


def test_bins_are_recorded_with_the_metric() -> None:
    table = tables(flow([12.0])).flows[0]
    assert table["cov_throughput_l4"].bin_s == pytest.approx(0.06)  # four base RTTs
    assert table["mean_cwnd_l4"].bin_s == pytest.approx(0.01)
    assert table["mean_throughput_l4"].bin_s is None
    assert {metric.unit for metric in table.values()} >= {"Mbit/s", "segments", "ms", "Mbit/s per s"}


def test_power_is_the_mean_of_ratios_not_the_ratio_of_means() -> None:
    one = flow([4.0, 20.0])
    one.series["srtt_ns"][:300] = 30_000_000  # type: ignore[index]
    one.series["srtt_ns"][300:] = 60_000_000  # type: ignore[index]
    table = tables(one).flows[0]
    assert table["mean_network_power_l4"].value == pytest.approx((4 / 0.030 + 20 / 0.060) / 2)
    assert table["mean_srtt_l4"].value == pytest.approx(45.0)


def test_utilities_and_cov_are_over_bins() -> None:
    table = tables(flow([4.0, 20.0])).flows[0]
    assert table["cov_throughput_l4"].value == pytest.approx(8 / 12, rel=1e-6)
    assert table["mean_utility_pf_l4"].value == pytest.approx((math.log(4) + math.log(20)) / 2, rel=1e-6)


def test_zero_bins_are_left_out_of_utilities_and_counted() -> None:
    table = tables(flow([0.0, 10.0])).flows[0]
    assert table["mean_utility_pf_l4"].value == pytest.approx(math.log(10))
    assert table["mean_utility_pf_l4"].skipped_bins == 50
    assert table["mean_throughput_l4"].value == pytest.approx(5.0)


def test_a_late_flow_is_judged_over_its_own_life() -> None:
    table = tables(flow([12.0]), flow([12.0], start_s=3.0)).flows[1]
    assert table["mean_throughput_l4"].value == pytest.approx(12.0)
    assert table["cov_throughput_l4"].value == pytest.approx(0.0, abs=1e-9)
    assert table["flow_completion_time_l4"].value == pytest.approx(3.0)


def test_network_table_of_equal_and_unequal_flows() -> None:
    equal = tables(flow([12.0]), flow([12.0])).network
    assert equal["mean_jains_fairness_throughput_l4"].value == pytest.approx(1.0)
    assert equal["mean_entropy_fairness_throughput_l4"].value == pytest.approx(math.log(2))
    assert equal["mean_normalized_entropy_fairness_throughput_l4"].value == pytest.approx(1.0)
    assert equal["mean_product_fairness_throughput_l4"].value == pytest.approx(144.0)
    assert equal["mean_geometric_fairness_throughput_l4"].value == pytest.approx(12.0)
    assert equal["mean_agg_throughput_l4"].value == pytest.approx(24.0)
    assert equal["mean_agg_in_flight_l4"].value == pytest.approx(32.0)
    assert equal["mean_agg_utility_pf_l4"].value == pytest.approx(2 * math.log(12))
    assert equal["mean_agg_utility_mpdf_l4"].value == pytest.approx(-2 / 12)
    assert equal["mean_agg_utilization_bw_l4"].value == pytest.approx(0.75)
    unequal = tables(flow([18.0]), flow([6.0])).network
    assert unequal["mean_jains_fairness_throughput_l4"].value == pytest.approx(24**2 / (2 * (18**2 + 6**2)))


def test_jain_is_the_mean_over_bins_not_of_the_means() -> None:
    # Taking turns: the means are equal, each moment is not.
    network = tables(flow([18.0, 6.0]), flow([6.0, 18.0])).network
    assert network["mean_jains_fairness_throughput_l4"].value == pytest.approx(24**2 / (2 * (18**2 + 6**2)))


def test_link_table() -> None:
    link = tables(flow([12.0])).link
    assert {name: metric.value for name, metric in link.items()} == pytest.approx(
        {
            "mean_qdisc_delay_l2": 21.5 * 6000 / 4000,  # Little's law
            "mean_qdisc_length_l2": 21.5,
            "mean_sending_rate_l1": 8.0,
            "total_qdisc_drops_l2": 135.0,
        }
    )


def test_a_flow_without_samples_has_no_numbers_rather_than_wrong_ones() -> None:
    table = tables(flow([0.0])).flows[0]
    assert table["cov_throughput_l4"].value is None
    assert table["mean_utility_pf_l4"].value is None


def test_a_bin_in_which_only_a_beginning_flow_receives_has_no_fairness() -> None:
    """One flow is silent and alive, the other begins within the bin: nothing is shared, and nothing divides by zero."""
    idle = flow([0.0, 12.0])
    begins = flow([12.0], start_s=0.03)
    begins_alone = tables(idle, begins).network["mean_jains_fairness_throughput_l4"]
    assert begins_alone.skipped_bins == 1  # the first of 60 ms
    # 49 bins of 0 and 12 Mbit/s, then 50 of 12 and 12.
    assert begins_alone.value == pytest.approx((49 * 0.5 + 50 * 1.0) / 99)


def test_the_mean_gap_is_over_the_time_that_a_gap_is_known() -> None:
    one = flow([12.0])
    gaps = np.full(one.series["cwnd_bytes"].size, 2.0)
    gaps[:5] = np.nan
    gaps[5] = 2.0 + (gaps.size - 5)
    for given, mean in ((gaps, 3.0), (np.full(gaps.size, np.nan), None)):
        assert tables(replace(one, gaps_ms=partial(np.copy, given))).flows[0]["mean_idt_ewma_l4"].value == mean
