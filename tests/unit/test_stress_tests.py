"""The stress tests with schemes that are known: one that should pass does, one that should fail does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ccgym.evaluation.engine import Reduction, measure
from ccgym.evaluation.prepared_run import Record
from ccgym.evaluation.run import contender
from ccgym.evaluation.simulate import simulate
from ccgym.experiments import spec
from ccgym.experiments.expand import Condition, generator
from ccgym.experiments.load import load_experiment
from ccgym.experiments.metrics import Measured
from ccgym.experiments.outcome import Test
from ccgym.experiments.plan import planned
from ccgym.experiments.training import training_range

FOUND = load_experiment("stress_tests")
assert isinstance(FOUND, spec.ExperimentSet)
TESTS = {one.name: Test(one) for one in FOUND.experiments}


def values(name: str, scheme: str, **at: float | str) -> dict[str, float]:
    """The metrics of the first run in the first condition with these coordinates."""
    test = TESTS[name]

    def chosen(one: Condition) -> bool:
        return at.items() <= one.at.items()

    key = next(one.key for one in test.conditions if chosen(one))
    run = next(one for one in planned(test, [contender(scheme)], runs=1, seed=5) if one.condition.key == key)

    def reduce(_: Any, record: Any) -> dict[str, float | None]:
        measured = Measured(run.scenario.path, record)
        return {metric.key: metric.of(measured) for metric in run.scenario.metrics}

    (outcome,) = measure([run.run], reduce=Reduction("values", 1, reduce))
    assert outcome.error is None
    found: dict[str, float] = outcome.data
    return found


def test_a_window_loses_what_exceeds_link_and_buffer() -> None:
    """10 Mbit/s and 40 ms: 34 packets in flight, 17 more in a buffer of half a product."""
    at = {"rate_mbps": 10, "owd_ms": 20, "buffer_bdp": 0.5}
    fitting = values("self_inflicted_loss", "fixed_window:cwnd=40", **at)
    assert fitting["loss"] == 0.0
    assert fitting["utilization"] == pytest.approx(1.0, abs=0.01)
    assert values("self_inflicted_loss", "fixed_window:cwnd=10", **at)["utilization"] == pytest.approx(
        10 / 33.3, rel=0.05
    )
    assert values("self_inflicted_loss", "fixed_window:cwnd=200", **at)["loss"] > 0.03


def test_a_rate_loses_what_exceeds_the_link() -> None:
    at = {"rate_mbps": 10, "owd_ms": 20, "buffer_bdp": 0.1}
    lost = values("self_inflicted_loss", "fixed_rate:rate_mbps=12.5", **at)["loss"]
    assert lost == pytest.approx(0.2, abs=0.01)


def test_equal_flows_share_equally() -> None:
    at = {"rate_mbps": 10, "buffer_bdp": 4.0}
    assert values("bandwidth_sweep", "fixed_window:cwnd=40", **at)["ratio"] > 0.97
    assert values("bandwidth_sweep", "copa", **at)["ratio"] > 0.8


def test_known_neighbors_of_cubic() -> None:
    test = "cubic_friendliness"
    shares = {
        scheme: values(test, scheme, rate_mbps=10, buffer_bdp=buffer, cubic="first")["cubic_share"]
        for scheme, buffer in (("cubic", 1.0), ("vegas", 1.0), ("bbr", 0.2))
    }
    assert 0.3 < shares["cubic"] < 0.7
    assert shares["vegas"] > 0.7, "it yields"
    assert shares["bbr"] < 0.3, "in shallow buffers it takes nearly all"


def test_both_orders_together_with_cubic_itself_give_half() -> None:
    test = "cubic_friendliness"
    found = [
        values(test, "cubic", rate_mbps=rate, buffer_bdp=1.0, cubic=order)["cubic_share"]
        for rate in (10, 20, 30)
        for order in ("first", "second")
    ]
    assert np.mean(found) == pytest.approx(0.5, abs=0.08)


def test_estimates_of_known_schemes() -> None:
    test = "stale_estimates"
    vegas = values(test, "vegas", rate_mbps=6.0, buffer="first")
    assert vegas["after_rtt_s"] == 10.0, "its least RTT never grows"
    bbr = values(test, "bbr", rate_mbps=6.0, buffer="first")
    assert 0 < bbr["after_rate_s"] < 5
    large = values(test, "fixed_window:cwnd=200", rate_mbps=6.0, buffer="last")
    # A window that suits the last path: noticed as soon as one looks, two round trips of 40 ms after the change.
    assert large["after_rate_s"] < 0.6


def test_acknowledgements_are_lost_for_a_second() -> None:
    scenario = TESTS["startup_recovery"].conditions[0].make(np.random.default_rng(5))
    record = simulate(
        scenario.path, ["fixed_window:cwnd=20"], scenario.duration_ns / 1e9, 1, Record(packets=False, series="50ms")
    )
    assert record.series is not None
    acked = dict(zip(record.series["t_ns"] // 10**6, record.series["flows"][0]["acked_bytes"], strict=True))
    # The silence reaches the sender a one-way delay after the element that makes it.
    assert acked[1100] == acked[2000] > acked[900]
    assert acked[3500] > acked[2100]


def test_a_longer_way_gets_less_of_fixed_windows() -> None:
    """Windows of 20 packets fill nothing: each flow has its window per its own round trip."""
    at = {"owd_ms": 50, "buffer_bdp": 1.0}
    assert values("rtt_fairness", "fixed_window:cwnd=20", **at)["ratio"] == pytest.approx(20 / 100, rel=0.03)
    cubic, bbr = (values("rtt_fairness", scheme, **at)["ratio"] for scheme in ("cubic", "bbr"))
    assert bbr < 0.2 < cubic, "BBR gives the longer way nearly all"


def test_four_flows() -> None:
    at = {"owd_ms": 10, "buffer_bdp": 1.0}
    bbr = values("many_flows", "bbr", **at)
    assert bbr["jain"] > 0.9
    assert max(bbr["second_s"], bbr["third_s"], bbr["fourth_s"]) < 10
    aurora = values("many_flows", "aurora", **at)
    assert aurora["jain"] < 0.6
    assert aurora["fourth_s"] == 25, "never: as long as one looked"


def test_random_loss_stops_cubic_and_not_copa() -> None:
    assert values("loss_responsiveness", "cubic")["utilization"] < 0.2
    assert values("loss_responsiveness", "copa")["utilization"] > 0.78


def test_extrapolation_is_from_the_range_of_each_scheme() -> None:
    assert values("extrapolation", "bbr", beyond="rate")["utilization"] > 0.5
    assert values("extrapolation", "fixed_window:cwnd=10", beyond="rate")["utilization"] < 0.05
    condition = next(one for one in TESTS["extrapolation"].conditions if one.key == "beyond=both")
    for scheme, rate_mbps, owd_ms in (("cubic", 1000, 300), ("aurora", 60, 1500)):
        path = condition.trained(training_range(contender(scheme))).make(generator(1)).path
        assert (path.mean_rate_mbps, path.one_way_delay_ms) == (pytest.approx(rate_mbps), owd_ms)


def test_late_decisions() -> None:
    for scheme, passes in (("eagle", True), ("aurora", False)):
        at = {"rate_mbps": 48, "owd_ms": 20}
        late, now = (values("decision_latency", scheme, latency=one, **at)["utilization"] for one in ("1 RTT", "none"))
        assert (late >= 0.9 * now) is passes, scheme


def test_bunched_acknowledgements_starve_copa_and_not_bbr() -> None:
    """Arun et al., SIGCOMM 2022: of a scheme that keeps delay low, jitter beyond that delay takes the share away."""
    bbr, copa = (values("starvation", scheme, unequal="bunched ACKs")["ratio"] for scheme in ("bbr", "copa:mode=paper"))
    assert copa < 0.05
    assert bbr > 0.2


def test_transfers_beside_a_long_flow() -> None:
    cubic, vegas = (values("short_flows", scheme, whose="long flow") for scheme in ("cubic", "vegas"))
    assert vegas["completion_s"] <= 1.1 * cubic["completion_s"], "it yields to transfers"
    own, aurora = (values("short_flows", scheme, whose="transfers") for scheme in ("cubic", "aurora"))
    assert aurora["completion_s"] > 1.1 * own["completion_s"]
    assert 0 < own["completion_s"] < own["completion_p95_s"] < 30


def test_a_flow_with_little_to_send_gets_that() -> None:
    at = {"buffer_bdp": 1.0, "whose": "limited"}
    goodputs = {
        scheme: values("limited_flows", scheme, **at)["limited_goodput"] for scheme in ("cubic", "copa", "aurora")
    }
    assert goodputs["cubic"] == pytest.approx(4.0, rel=0.02)
    assert goodputs["copa"] >= 0.9 * goodputs["cubic"]
    assert goodputs["aurora"] < 0.5 * goodputs["cubic"]
