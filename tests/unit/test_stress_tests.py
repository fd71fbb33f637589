"""The stress tests: each is sound and repeats itself; known schemes pass and fail what they should."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ccgym.config.models import Droptail, Link
from ccgym.evaluation.engine import Reduction, measure
from ccgym.evaluation.prepared_run import Record
from ccgym.evaluation.run import contender
from ccgym.evaluation.simulate import simulate
from ccgym.experiments.expand import Condition, conditions, generator, run_seed
from ccgym.experiments.load import load_experiment
from ccgym.experiments.metrics import Measured
from ccgym.experiments.outcome import Test
from ccgym.experiments.plan import planned, training_range
from ccgym.experiments.spec import ExperimentSet, ExperimentSpec
from ccgym.experiments.training import Box, TrainingRange
from ccgym.schemes.flow import flow_spec


def experiments(quick: bool = False) -> dict[str, ExperimentSpec]:
    """The stress tests by name."""
    found = load_experiment("weaknesses", quick=quick)
    assert isinstance(found, ExperimentSet)
    return {one.name: one for one in found.experiments}


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


STRESS_TESTS = tuple(experiments())
TESTS = {name: Test(one) for name, one in experiments().items()}


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


# --- Each of them ----------------------------------------------------------------------------------------------------


def test_the_stress_tests_are_there() -> None:
    files = (Path(__file__).parents[2] / "configs/experiments/weaknesses").glob("*.yaml")
    assert sorted(STRESS_TESTS) == sorted(file.stem for file in files), "list it in configs/experiments/weaknesses.yaml"
    alone = load_experiment("weaknesses/self_inflicted_loss")
    assert alone.name == "self_inflicted_loss"


@pytest.mark.parametrize("name", STRESS_TESTS)
@pytest.mark.parametrize("quick", [True, False])
def test_every_scenario_is_sound_and_repeats_itself(name: str, quick: bool) -> None:
    experiment = experiments(quick)[name]
    tested = "aurora" if experiment.learned_only else "reno"
    found = conditions(experiment)
    assert len({one.key for one in found}) == len(found)
    for condition in found[:: max(1, len(found) // 7)]:
        scenario = condition.make(rng(7))
        links = [one.uplink for one in scenario.path.chain if isinstance(one, Link)]
        # Behind a fair queue every scheme would look fair.
        assert [type(link.queue) for link in links if link is not None] == [Droptail]
        scenario.path.compile(scenario.duration_ns)
        assert scenario == condition.make(rng(7))
        flows = scenario.flows_of([flow_spec(tested)])
        assert all(flow.start_ns < (flow.stop or scenario.duration_ns) for flow in flows)


def test_paths_of_the_training_range() -> None:
    (condition,) = (one for one in conditions(experiments()["extrapolation"]) if one.key == "beyond=both")
    trained = TrainingRange((Box((1.0, 6.0), (5.0, 50.0)), Box((2.0, 8.0), (1.0, 20.0))))
    for on, rate_mbps, owd_ms in ((None, 1000, 300), (trained, 80, 150)):
        path = condition.trained(on).make(rng()).path
        assert (path.mean_rate_mbps, path.one_way_delay_ms) == (rate_mbps, owd_ms)
    (other,) = conditions(experiments()["responsiveness"])
    assert other.trained(trained) is other, "it does not ask"


def test_the_testbed_delays_packets_in_front_of_the_queue() -> None:
    """Against phase effects: by up to one packet's time."""
    condition = next(one for one in conditions(experiments()["self_inflicted_loss"]) if one.at["rate_mbps"] == 10)
    path = condition.make(rng()).path
    assert path.base_rtt_ms == 2 * float(condition.at["owd_ms"])
    uplink = path.compile().uplink
    jitter = next(element for element in uplink if element["kind"] == "jitter")
    link = next(element for element in uplink if element["kind"] == "link")
    assert jitter["distribution"] == {"kind": "uniform", "max": 1_200_000}
    assert uplink.index(jitter) < uplink.index(link)


def test_the_silence_of_the_start_is_on_the_way_back() -> None:
    for condition in conditions(experiments()["startup_recovery"]):
        killed = [element for element in condition.make(rng()).path.compile().downlink if element["kind"] == "loss"]
        assert [element["probability"] for element in killed] == [[[0, 0.0], [10**9, 1.0], [2 * 10**9, 0.0]]]


def test_repetitions_differ_and_a_joining_flow_is_late() -> None:
    condition = conditions(experiments()["bandwidth_sweep"])[0]
    seeds = [run_seed(1, "bandwidth_sweep", condition.key, run) for run in range(1, 51)]
    assert len(set(seeds)) == 50
    starts = [
        float(flow_spec({**condition.make(generator(s)).flows[1], "scheme": "reno"}).start_ns) / 1e9 for s in seeds
    ]
    assert min(starts) >= 25.0
    assert max(starts) <= 26.25
    assert len(set(starts)) == 50
    assert run_seed(2, "bandwidth_sweep", condition.key, 1) != seeds[0]


def test_a_quick_look_is_smaller_and_shares_its_conditions_with_the_whole() -> None:
    whole, quick = experiments(), experiments(quick=True)
    for name in STRESS_TESTS:
        every = {one.key for one in conditions(whole[name])}
        few = {one.key for one in conditions(quick[name])}
        assert few <= every
        runs = [len(keys) * one.runs * one.draws for keys, one in ((few, quick[name]), (every, whole[name]))]
        assert runs[0] <= runs[1] / 5


def test_bounds_of_a_condition_are_those_of_its_draws() -> None:
    (drawn,) = conditions(experiments()["responsiveness"])
    low, high = drawn.bounds()
    assert (low.path.mean_rate_mbps, low.path.one_way_delay_ms) == (1.0, 10.0)
    assert (high.path.mean_rate_mbps, high.path.one_way_delay_ms) == (100.0, 100.0)
