"""Metrics against what they must give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ccgym.config.path import NetworkPath
from ccgym.errors import ConfigError, SimulationError
from ccgym.evaluation.ccperf_names import DEFINITIONS
from ccgym.evaluation.metrics import Passed
from ccgym.evaluation.prepared_run import Record
from ccgym.evaluation.simulate import simulate
from ccgym.experiments.metrics import Measured, read_metric
from ccgym.experiments.metrics.circuit_breaker import equation
from ccgym.experiments.sample import Sample
from ccgym.schemes.flow import read_flow
from tests.refusals import refused


def sample(
    *payload: list[float],
    drops: list[float] | None = None,
    sent: list[float] | None = None,
    lost: list[float] | None = None,
    srtt_ms: list[float] | None = None,
) -> Sample:
    """A sample every second, of a link of 12 Mbit/s; headers left aside."""
    times = np.arange(len(payload[0]), dtype=float)
    return Sample(
        t_s=times,
        payload=tuple(np.array(one, dtype=float) for one in payload),
        sent=tuple(np.array(sent or [0] * len(times), dtype=float) for _ in payload),
        sent_bytes=tuple(1500 * np.array(sent or [0] * len(times), dtype=float) for _ in payload),
        lost=tuple(np.array(lost or [0] * len(times), dtype=float) for _ in payload),
        arrived=tuple(1.2 * np.array(one, dtype=float) for one in payload),
        srtt_ms=tuple(np.array(srtt_ms or [0] * len(times), dtype=float) for _ in payload),
        states=tuple(() for _ in payload),
        drops=np.array(drops or [0] * len(times), dtype=float),
        wire_ratio=(1.0,) * len(payload),
        capacity_bits=12e6 * times,
        queue_delay_ms=0.0,
    )


def test_goodput_and_utilization_are_of_the_interval() -> None:
    two = sample([0, 1e6, 2e6, 2.5e6, 3e6], [0, 0, 0, 1e6, 2e6])
    assert two.goodput_mbps(0, 0, 2) == pytest.approx(8)
    assert two.goodput_mbps(0, 2, 4) == pytest.approx(4)
    assert two.goodput_mbps(1, 2.5, 3.5) == pytest.approx(8), "between samples counts grow evenly"
    assert two.utilization((0, 1), 2, 4) == pytest.approx(1.0)
    assert two.utilization((1,), 2, 4) == pytest.approx(2 / 3)
    assert two.utilization((0,), 0, 0) == 0.0, "no time, no capacity"


def test_the_offered_load_is_what_was_sent_per_capacity() -> None:
    two = sample([0] * 4, [0] * 4, sent=[0, 500, 1500, 3000])
    assert two.offered_load((0,), 0, 1) == pytest.approx(0.5)
    assert two.offered_load((0, 1), 1, 3) == pytest.approx(2.5)
    assert two.offered_load((0,), 1, 1) == 0.0, "no time, no capacity"


def test_percentiles_of_the_round_trip_time_are_values_that_it_had() -> None:
    one = sample([0] * 6, srtt_ms=[0, 0, 40, 10, 30, 20])
    assert one.rtt_percentile_ms(0, 100, 0, 5) == 40
    assert one.rtt_percentile_ms(0, 50, 2, 5) == 20
    assert one.rtt_percentile_ms(0, 95, 0, 1) is None, "nothing is measured yet"
    assert read_metric("rtt", {"metric": "round_trip_time", "percentile": 95}).percentile == 95  # type: ignore[attr-defined]
    with refused(ConfigError, "out-of-range at percentile"):
        read_metric("rtt", {"metric": "round_trip_time", "percentile": 101})


def test_series_have_losses_and_round_trip_times() -> None:
    one = sample([0, 1e6, 2e6], drops=[0, 5, 5], sent=[0, 100, 100], srtt_ms=[0, 40, 0])
    series = one.series(1.0)
    assert series["loss"] == [0.05, 0.0]
    assert series["rtt_ms"] == [40.0, 0.0]
    assert series["rate_mbps"] == [8.0, 8.0]


def test_the_loss_rate_is_of_what_was_sent_in_the_interval() -> None:
    one = sample([0] * 5, drops=[0, 90, 90, 91, 92], sent=[0, 100, 200, 300, 400])
    assert one.drop_rate(2, 4) == pytest.approx(0.01)
    assert one.drop_rate(0, 0) == 0.0, "nothing sent"


def test_a_sample_of_a_run_agrees_with_its_record() -> None:
    path = NetworkPath(rate="10mbps", rtt="40ms", queue="0.5bdp")
    record = simulate(path, ["cubic"], "20s", 3, Record(packets=False, series="100ms"))
    taken = Sample.of(record)
    assert taken.goodput_mbps(0, 0, 20) == pytest.approx(record.flows[0].goodput_mbps)
    assert taken.drops[-1] == record.link.drops
    assert 0.8 < taken.utilization((0,), 0, 20) <= 1.0
    full_ms = 17 * 1500 * 8 / 10e6 * 1e3
    assert 0 < taken.queue_delay_ms < full_ms
    with refused(SimulationError, "path-without-link"):
        Sample.of(simulate(path, ["cubic"], "1s", 3, Record(packets=False, series=0)))


def test_headers_count_by_the_size_of_each_flows_packets() -> None:
    path = NetworkPath(rate="10mbps", rtt="40ms", queue="4bdp")
    given = [{"scheme": "cubic", "mss": 200}, {"scheme": "cubic"}]
    record = simulate(path, given, "20s", 3, Record(packets=False, series="100ms"))
    measured = Measured(path, record, [read_flow(one) for one in given])
    assert measured.sample.utilization((0, 1), 5, 20) == pytest.approx(1.0, abs=0.02)
    assert measured.sample.utilization((0,), 5, 20) == pytest.approx(measured.sample.share((0,), 5, 20), rel=0.02)
    rates = measured.sample.series(1.0)["rate_mbps"][5:]
    assert np.mean(rates) == pytest.approx(10 * measured.sample.utilization((0, 1), 5, 20), rel=0.01)


class Found:
    """A run that left this sample."""

    def __init__(self, taken: Sample, flows: int) -> None:
        self.sample = taken
        self.record = type("Record", (), {"flows": (None,) * flows})
        self.duration_s = float(taken.t_s[-1])


def value(found: Sample, name: str, flows: int = 2, /, **options: Any) -> float | None:
    measured: Any = Found(found, flows)
    return read_metric(name, options).of(measured)


def test_metrics_of_flows_over_a_part_of_the_run() -> None:
    two = sample([0, 1e6, 2e6, 2.5e6, 3e6], [0, 0, 0, 1e6, 2e6])
    assert value(two, "goodput_ratio", **{"from": "2s"}) == pytest.approx(0.5)
    assert value(two, "goodput_ratio", to="2s") == 0.0
    assert value(two, "jain", **{"from": "2s"}) == pytest.approx(0.9), "2 : 1 is 9 / (2 · 5)"
    assert value(two, "jain", to="2s") == pytest.approx(0.5), "one of two"
    assert value(two, "goodput", **{"from": 2, "to": 4}) == pytest.approx(12)
    assert read_metric("utilization", {"flows": [2], "from": "2s"}).of(Found(two, 2)) == pytest.approx(2 / 3)  # type: ignore[arg-type]
    assert value(two, "collapsed", below="90%") == 1.0
    assert value(two, "collapsed", below="50%") == 0.0
    with refused(ConfigError, "out-of-range at utilization"):
        read_metric("utilization", {"flows": [3]}).of(Found(two, 2))  # type: ignore[arg-type]


def test_recovery_time_is_never_longer_than_it_is_looked_for() -> None:
    rising = sample(list(np.cumsum([0, 0.5e6, 0.5e6, 0.5e6, 1.5e6, 1.5e6, 1.5e6])))
    options = {"change": "1s", "until": "6s", "window": "1s"}
    assert value(rising, "recovery_time", 1, **options) == pytest.approx(2.0)
    assert value(rising, "recovery_time", 1, blind="3s", **options) == pytest.approx(3.0)
    assert value(rising, "recovery_time", 1, fraction=1.0, **{**options, "until": "3s"}) == pytest.approx(2.0)
    metric = read_metric("recovery_time", options)
    assert (metric.show(5.0), metric.show(2.04), metric.show(None)) == ("≥ 5 s", "2.0 s", "–")


def test_convergence_time_is_until_all_are_even() -> None:
    # Flow 2 joins at 1 s, and has half of what flow 1 has from 4 s on, all of it from 5 s on.
    one, two = np.cumsum([0, 1.2e6, 1e6, 1e6, 1e6, 0.7e6, 0.7e6]), np.cumsum([0, 0, 0.1e6, 0.1e6, 0.1e6, 0.6e6, 0.7e6])
    joined = sample(list(one), list(two))
    options = {"change": "1s", "until": "6s", "window": "1s"}
    assert value(joined, "convergence_time", 2, **options) == pytest.approx(3.0)
    assert value(joined, "convergence_time", 2, index=0.999, **options) == pytest.approx(4.0)
    assert value(joined, "convergence_time", 2, **{**options, "until": "4s"}) == pytest.approx(3.0), "never"
    assert value(joined, "convergence_time", 2, flows=[1], **options) == 0.0
    up, down = np.cumsum([0, 0, 0.1e6, 0.7e6, 0.9e6, 1e6]), np.cumsum([0, 1e6, 0.9e6, 0.7e6, 0.1e6, 0])
    crossing = sample(list(down), list(up))
    never = {**options, "until": "5s"}
    assert value(crossing, "convergence_time", 2, **never) == pytest.approx(4.0), (
        "rates that cross are even for a while"
    )


def test_a_circuit_breaker_looks_at_three_reports_in_a_row() -> None:
    # A hundred packets a second at 100 ms: TCP at 10 % of loss sends 17, ten times that is allowed; at 50 %, below one.
    times = [float(at) for at in range(31)]
    sent = [100 * at for at in times]
    for lost, tripped, after in (
        ([0 * at for at in times], 0.0, None),
        ([10 * at for at in times], 0.0, None),
        ([50 * at for at in times], 1.0, 15.0),
        ([50 * min(at, 10) for at in times], 0.0, None),
        ([50 * max(at - 5, 0) for at in times], 1.0, 20.0),
    ):
        one = sample([0] * 31, sent=sent, lost=lost, srtt_ms=[100] * 31)
        assert value(one, "circuit_breaker", 1) == tripped
        assert value(one, "circuit_breaker", 1, of="time") == after
    assert value(one, "circuit_breaker", 1, intervals=4, of="time") == 25.0
    assert value(one, "circuit_breaker", 1, reporting="2s", of="time") == 10.0
    unmeasured = sample([0] * 31, sent=sent, lost=sent)
    assert value(unmeasured, "circuit_breaker", 1) == 0.0, "no round trip, no rule"
    assert read_metric("circuit_breaker", {}).better == "lower"
    assert read_metric("circuit_breaker", {"of": "time"}).better == "higher"
    assert equation(0.01, 0.1) == pytest.approx(111, rel=0.02), "about 1.2 / (0.1 · √0.01)"
    assert equation(0.0, 0.1) == float("inf")


def test_completion_times_of_transfers() -> None:
    def flow(start_s: float, completion_s: float | None) -> Any:
        return type("Flow", (), {"start_s": start_s, "completion_s": completion_s, "transfers": None})

    record = type("Record", (), {"flows": (flow(0, None), flow(1, 1.0), flow(2, 3.0), flow(4, None))})
    run: Any = type("Run", (), {"record": record, "duration_s": 10.0})
    assert read_metric("completion_time", {"besides": [1]}).of(run) == pytest.approx((1 + 3 + 6) / 3), "6 s so far"
    assert read_metric("completion_time", {"besides": [1], "percentile": 50}).of(run) == pytest.approx(3.0)
    assert read_metric("completion_time", {"besides": [1, 2, 3, 4]}).of(run) is None


def test_a_share_is_of_the_packets_that_the_link_carried() -> None:
    two = sample([0, 0.5e6, 1e6], [0, 0.25e6, 0.5e6])
    assert value(two, "share", flows=[1]) == pytest.approx(1.2 * 4 / 12), "headers take of the link, too"
    assert value(two, "share") == pytest.approx(1.2 * 6 / 12)


def test_what_a_flow_sees_of_delay_and_loss() -> None:
    one = sample([0] * 5, sent=[0, 100, 200, 300, 400], lost=[0, 50, 50, 51, 52], srtt_ms=[0, 0, 40, 60, 80])
    assert value(one, "declared_loss", 1, **{"from": "2s"}) == pytest.approx(0.01)
    assert value(one, "round_trip_time", 1) == pytest.approx(60), "before the first measurement there is none"
    assert value(one, "round_trip_time", 1, **{"from": "2s", "to": "3s"}) == pytest.approx(60)
    assert value(one, "round_trip_time", 1, to="1s") is None
    assert value(sample([0, 0]), "declared_loss", 1) == 0.0


@pytest.mark.parametrize(
    ("quantity", "alone", "together", "harm"),
    [
        ("throughput", 10.0, 4.0, 0.6),
        ("throughput", 10.0, 11.0, 0.0),
        ("throughput", 0.0, 0.0, 0.0),
        ("delay", 20.0, 80.0, 0.75),
        ("delay", 80.0, 20.0, 0.0),
        ("loss", 0.0, 0.01, 1.0),
        ("loss", 0.01, 0.0, 0.0),
        ("loss", 0.0, 0.0, 0.0),
        ("delay", None, 80.0, None),
        ("delay", 20.0, None, None),
    ],
)
def test_harm_is_by_how_much_a_flow_is_worse_off(
    quantity: str, alone: float | None, together: float | None, harm: float | None
) -> None:
    metric = read_metric("harm", {"in": quantity, "flows": [1]})
    assert metric.compared(together, alone) == (None if harm is None else pytest.approx(harm))


def test_harm_is_done_to_one_flow() -> None:
    metric = read_metric("harm", {"in": "throughput", "flows": [2], "from": "2s"})
    assert metric.alone == 2
    two = sample([0, 1e6, 2e6, 2.5e6, 3e6], [0, 0, 0, 1e6, 2e6])
    assert metric.of(Found(two, 2)) == pytest.approx(8)  # type: ignore[arg-type]
    assert metric.of(Found(sample([0, 0, 0, 1e6, 2e6]), 1)) == pytest.approx(8), "alone it is the first"  # type: ignore[arg-type]
    with refused(ConfigError, "wrong-count at harm"):
        _ = read_metric("harm", {"in": "throughput"}).alone


def test_metrics_of_a_whole_record() -> None:
    path = NetworkPath(rate="10mbps", rtt="40ms", queue="0.5bdp")
    record = simulate(path, ["cubic"], "5s", 3)
    measured = Measured(path, record)
    assert read_metric("delay_p95", {}).of(measured) == record.total.delay_p95_ms
    left = record.packets.delay_ns if record.packets is not None else np.zeros(1)
    for percent in (50, 95, 99):
        metric = read_metric("tail", {"metric": "delay_percentile", "percentile": percent})
        assert metric.of(measured) == pytest.approx(np.percentile(left, percent) / 1e6)


def test_ccperfs_metrics_by_name() -> None:
    path = NetworkPath(rate="10mbps", rtt="40ms", queue="0.5bdp")
    record = simulate(path, ["cubic", "reno"], "5s", 3)
    measured = Measured(path, record)
    tables = record.ccperf().scopes()
    names = [(scope.partition("_")[0], name) for scope, table in tables.items() for name in table]
    assert all(DEFINITIONS[name].scope == {"btl": "link"}.get(scope, scope) for scope, name in names)
    for name, known in DEFINITIONS.items():
        if known.layer == "l7":
            continue  # of some sources only
        metric = read_metric(name, {})
        scope = {"flow": "flow_1", "link": "btl_forward", "net": "net"}[known.scope]
        assert metric.of(measured) == tables[scope][name].value is not None
        assert (metric.better, metric.unit) == (known.better, known.unit.removeprefix("1") or "")
    second = read_metric("sRTT", {"metric": "mean_srtt_l4", "scope": "flow_2", "label": "sRTT"})
    assert (second.of(measured), second.label) == (tables["flow_2"]["mean_srtt_l4"].value, "sRTT")
    assert read_metric("mean_idt_ewma_l4", {}).needs_packets
    for options, code in (
        ({"metric": "mean_rtt_l4"}, "unknown-metric"),
        ({"metric": "mean_srtt_l4", "scope": "flow1"}, "unknown-choice"),
        ({"metric": "mean_srtt_l4", "scope": "net"}, "unknown-metric"),
        ({"metric": "mean_srtt_l4", "name": "mean_cwnd_l4"}, "unknown-key"),
    ):
        with refused(ConfigError, code):
            read_metric("m", options).of(measured)


@pytest.mark.parametrize(
    ("value", "text"), [(0.979, "97.9 %"), (0.0212, "2.12 %"), (0.0, "0 %"), (1.0, "100 %"), (0.05, "5 %"), (None, "–")]
)
def test_fractions_are_shown_as_percent(value: float | None, text: str) -> None:
    assert read_metric("utilization", {}).show(value) == text


# --- Packets of a part of the run ------------------------------------------------------------------------------------


def test_throughput_and_delay_of_a_part_are_those_of_its_packets() -> None:
    record = simulate(
        {"rate": "8mbps", "rtt": "40ms", "queue": "1bdp"},
        ["cubic", {"scheme": "vegas", "start": "1s"}],
        "4s",
        record=Record(packets=True, series="100ms"),
    )
    run = Measured(NetworkPath.from_any({"rate": "8mbps", "rtt": "40ms"}), record)
    whole = read_metric("throughput", {}).of(run)
    assert whole == pytest.approx(record.total.throughput_mbps), "Pantheon's, over the whole run"
    log = record.packets
    assert log is not None
    own = (log.departure_flow == 2) & (log.departure_ns > 2 * 10**9) & (log.departure_ns < 3 * 10**9)
    span = {"flows": [2], "from": "2s", "to": "3s"}
    assert read_metric("mean_delay", span).of(run) == pytest.approx(log.delay_ns[own].mean() / 1e6)
    times, sizes = log.departure_ns[own], log.departure_bytes[own]
    expected = sizes.sum() * 8000 / (times.max() - times.min())
    assert read_metric("throughput", span).of(run) == pytest.approx(expected)
    before = {"flows": [2], "to": "1s"}
    assert read_metric("throughput", before).of(run) == 0
    assert read_metric("mean_delay", before).of(run) is None


def test_packets_that_overtake_leave_at_their_own_times() -> None:
    record = simulate(
        {"rate": "8mbps", "rtt": "40ms", "jitter": {"distribution": "30ms", "reorder": True}},
        ["reno"],
        "2s",
        record=Record(packets=True, series="100ms"),
    )
    run = Measured(NetworkPath.from_any({"rate": "8mbps", "rtt": "40ms"}), record)
    log = record.packets
    assert log is not None
    assert np.any(np.diff(log.departure_ns) < 0)
    inside = (log.departure_ns > 10**9) & (log.departure_ns < 2 * 10**9)
    left, delays = run.departures([0], 1.0, 2.0)
    assert left == Passed.of(log.departure_ns[inside], log.departure_bytes[inside])
    assert sorted(delays) == sorted(log.delay_ns[inside])
