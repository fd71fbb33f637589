"""The weakness tests: measures against what they must give, criteria, verdicts, ranges of training, resume, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ccgym.config.distribution_curriculum import read_paths
from ccgym.config.path import NetworkPath
from ccgym.errors import ConfigError, SimulationError
from ccgym.evaluation.prepared_run import Record
from ccgym.evaluation.simulate import simulate
from ccgym.evaluation.weaknesses import TESTS
from ccgym.evaluation.weaknesses.bandwidth_sweep import BandwidthSweep
from ccgym.evaluation.weaknesses.base import Criterion, Evidence, Measure, Weakness, inside_range, located
from ccgym.evaluation.weaknesses.cubic_friendliness import CubicFriendliness
from ccgym.evaluation.weaknesses.intra_rtt_fairness import IntraRttFairness
from ccgym.evaluation.weaknesses.responsiveness import Responsiveness
from ccgym.evaluation.weaknesses.rig import dumbbell, joins_at, require_fifo
from ccgym.evaluation.weaknesses.runs import Cell, cells_of
from ccgym.evaluation.weaknesses.sample import Sample
from ccgym.evaluation.weaknesses.self_inflicted_loss import SelfInflictedLoss
from ccgym.evaluation.weaknesses.stale_estimates import StaleEstimates
from ccgym.evaluation.weaknesses.startup_recovery import StartupRecovery
from ccgym.evaluation.weaknesses.training_range import range_of_card, range_of_rows
from ccgym.schemes.registry import parse_scheme, parse_schemes

BY_NAME = {test.name: test for test in TESTS}


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


# --- Measures ------------------------------------------------------------------------------------------------------


def sample(*payload: list[float], drops: list[float] | None = None, sent: list[float] | None = None) -> Sample:
    """A sample every second, of a link of 12 Mbit/s; headers left aside."""
    times = np.arange(len(payload[0]), dtype=float)
    return Sample(
        t_s=times,
        payload=tuple(np.array(one, dtype=float) for one in payload),
        sent=tuple(np.array(sent or [0] * len(times), dtype=float) for _ in payload),
        drops=np.array(drops or [0] * len(times), dtype=float),
        wire_share=1.0,
        capacity_bits=12e6 * times,
        queue_delay_ms=0.0,
    )


def test_goodput_fairness_and_utilization_are_of_the_interval() -> None:
    two = sample([0, 1e6, 2e6, 2.5e6, 3e6], [0, 0, 0, 1e6, 2e6])
    assert two.goodput_mbps(0, 0, 2) == pytest.approx(8)
    assert two.goodput_mbps(0, 2, 4) == pytest.approx(4)
    assert two.goodput_mbps(1, 2.5, 3.5) == pytest.approx(8), "between samples counts grow evenly"
    assert two.fairness(0, 1, 2, 4) == pytest.approx(0.5)
    assert two.fairness(0, 1, 0, 2) == 0.0
    assert two.utilization((0, 1), 2, 4) == pytest.approx(1.0)
    assert two.utilization((1,), 2, 4) == pytest.approx(2 / 3)


def test_nothing_is_neither_fair_nor_a_division_by_zero() -> None:
    nothing = sample([0, 0, 0], [0, 0, 0])
    assert nothing.fairness(0, 1, 0, 2) == 0.0
    assert nothing.drop_rate(0, 2) == 0.0
    assert nothing.utilization((0,), 0, 0) == 0.0


def test_the_loss_rate_is_of_what_was_sent_meanwhile() -> None:
    one = sample([0] * 5, drops=[0, 90, 90, 91, 92], sent=[0, 100, 200, 300, 400])
    assert one.drop_rate(2, 4) == pytest.approx(0.01)


def test_time_to_a_share_counts_from_the_change() -> None:
    # 12 Mbit/s from the beginning of second 3 on, before that a third of it.
    rising = sample(list(np.cumsum([0, 0.5e6, 0.5e6, 0.5e6, 1.5e6, 1.5e6, 1.5e6])))
    assert rising.time_to(0.8, 1.0, 1.0, 6.0, 1.0) == pytest.approx(2.0)
    assert rising.time_to(0.8, 1.0, 4.0, 6.0, 1.0) == pytest.approx(3.0), "not before one looks"
    assert rising.time_to(1.1, 1.0, 1.0, 6.0, 1.0) == pytest.approx(5.0), "never: as long as one looked"


def test_a_sample_of_a_run_agrees_with_its_record() -> None:
    path = dumbbell(10, 20, buffer_bdp=0.5)
    record = simulate(path, ["cubic"], "20s", 3, Record(packets=False, series="100ms"))
    taken = Sample.of(record)
    assert taken.goodput_mbps(0, 0, 20) == pytest.approx(record.flows[0].goodput_mbps)
    assert taken.drops[-1] == record.link.drops
    assert 0.8 < taken.utilization((0,), 0, 20) <= 1.0
    full_ms = 17 * 1500 * 8 / 10e6 * 1e3
    assert 0 < taken.queue_delay_ms < full_ms
    with pytest.raises(SimulationError, match="without series"):
        Sample.of(simulate(path, ["cubic"], "1s", 3, Record(packets=False, series=0)))


# --- The rig -------------------------------------------------------------------------------------------------------


def test_the_rig_is_a_plain_fifo_dumbbell() -> None:
    path = dumbbell(12, 25, buffer_bdp=2, ack_loss=[(0, 0.0), (1, 1.0), (2, 0.0)])
    uplink = path.compile().uplink
    assert path.base_rtt_ms == 50
    link = next(element for element in uplink if element["kind"] == "link")
    assert link["queue"] == {"kind": "droptail", "limit": {"packets": 100}}
    jitter = next(element for element in uplink if element["kind"] == "jitter")
    assert jitter["distribution"] == {"kind": "uniform", "max": 1_000_000}, "one packet at 12 Mbit/s, in ns"
    assert uplink.index(jitter) < uplink.index(link), "in front of the queue"
    killed = [element for element in path.compile().downlink if element["kind"] == "loss"]
    assert [element["probability"] for element in killed] == [[[0, 0.0], [10**9, 1.0], [2 * 10**9, 0.0]]]


@pytest.mark.parametrize("queue", ["fq_codel", "codel", "infinite"])
def test_other_queues_are_refused(queue: str) -> None:
    with pytest.raises(ConfigError, match="expected: a droptail queue"):
        require_fifo(NetworkPath(rate="12mbps", rtt="20ms", queue=queue))


def test_a_path_without_a_bottleneck_is_refused() -> None:
    with pytest.raises(ConfigError, match="without a bottleneck"):
        require_fifo(NetworkPath(chain=[{"kind": "delay", "delay": "10ms"}]))


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.name)
@pytest.mark.parametrize("quick", [True, False])
def test_every_scenario_is_sound_and_repeats_itself(test: Weakness, quick: bool) -> None:
    conditions = test.conditions(quick=quick)
    assert len({one.key for one in conditions}) == len(conditions)
    for condition in conditions[:: max(1, len(conditions) // 7)]:
        scenario = condition.make(rng(7))
        require_fifo(scenario.path)
        scenario.path.compile(scenario.duration_ns)
        assert scenario == condition.make(rng(7))
        assert all(flow.start_ns < (flow.stop_ns or scenario.duration_ns) for flow in scenario.flows)
        assert scenario.rates_mbps[0] <= scenario.rates_mbps[1]


def test_quick_looks_are_smaller_and_share_their_runs_with_long_ones() -> None:
    choices = [parse_scheme("cubic")]
    for test in TESTS:
        full = {cell.digest for cell in cells_of(test, choices, runs=5, seed=1, quick=False)}
        quick = {cell.digest for cell in cells_of(test, choices, runs=1, seed=1, quick=True)}
        assert len(quick) <= len(full) / 5
        assert quick <= full


def test_repetitions_differ_and_schemes_meet_the_same_ones() -> None:
    made = list(cells_of(BY_NAME["responsiveness"], parse_schemes("cubic,bbr"), runs=1, seed=1, quick=True))
    assert len(made) == 2 * 5
    by_scheme = {key: [cell.scenario for cell in made if cell.choice.key == key] for key in ("cubic", "bbr")}
    assert by_scheme["cubic"] == by_scheme["bbr"]
    assert len({cell.seed for cell in made}) == 5
    assert len({str(scenario.path) for scenario in by_scheme["bbr"]}) == 5
    other = next(cells_of(BY_NAME["responsiveness"], parse_schemes("cubic"), runs=1, seed=2, quick=True))
    assert other.seed != made[0].seed


def test_a_joining_flow_is_late_by_a_share() -> None:
    starts = [joins_at(10.0, rng(seed)) / 1e9 for seed in range(50)]
    assert min(starts) >= 10.0
    assert max(starts) <= 10.5
    assert len(set(starts)) == 50


# --- Criteria and verdicts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("criterion", "passed"),
    [
        (Criterion("m", "", 0.8, low=0.8), True),
        (Criterion("m", "", 0.79, low=0.8), False),
        (Criterion("m", "", 0.71, low=0.3, high=0.7), False),
        (Criterion("m", "", 0.5, low=0.3, high=0.7), True),
        (Criterion("m", "", 0.0, high=0.0), True),
        (Criterion("m", "", 5.0, high=5.0, strict=True), False),
        (Criterion("m", "", 4.99, high=5.0, strict=True), True),
        (Criterion("m", "", float("nan"), low=0.0), False),
        (Criterion("m", "", None, low=0.0), None),
    ],
)
def test_criteria(criterion: Criterion, passed: bool | None) -> None:
    assert criterion.passed is passed


def evidence(test: Weakness, inside: bool | None = None, **values: Any) -> Evidence:
    """Evidence in which each measure is a number, or a function of the condition; of others 0."""
    conditions = test.conditions(quick=False)
    means = {}
    for one in conditions:
        for measure in test.measures:
            value = values.get(measure.key, 0.0)
            means[one.key, measure.key] = value(one) if callable(value) else value
    return Evidence(means, conditions, {one.key: inside for one in conditions})


def verdicts(criteria: list[Criterion]) -> list[bool | None]:
    return [one.passed for one in criteria]


def test_fairness_asks_less_outside_of_the_range_of_training() -> None:
    test = IntraRttFairness()
    assert verdicts(test.criteria(evidence(test, ratio=0.6), None)) == [False]
    assert verdicts(test.criteria(evidence(test, ratio=0.6, inside=True), None)) == [False]
    outside = test.criteria(evidence(test, ratio=0.6, inside=False), None)
    assert verdicts(outside) == [True]
    assert outside[0].group == "outside the training range"
    mixed = evidence(test, ratio=lambda one: 0.9 if float(one.at["one_way_ms"]) <= 50 else 0.4)
    inside = {one.key: float(one.at["one_way_ms"]) <= 50 for one in mixed.conditions}
    within, beyond = test.criteria(Evidence(mixed.means, mixed.conditions, inside), None)
    assert within.value == pytest.approx(0.9)
    assert beyond.value == pytest.approx(0.4)
    assert verdicts([within, beyond]) == [True, False]


def test_the_sweep_asks_for_fairness_and_for_use() -> None:
    test = BandwidthSweep()
    assert verdicts(test.criteria(evidence(test, ratio=0.9, utilization=0.89), None)) == [True, False]
    assert verdicts(test.criteria(evidence(test, ratio=0.7, utilization=0.99), None)) == [False, True]


def test_too_much_here_and_too_little_there_is_no_friendliness() -> None:
    test = CubicFriendliness()
    extremes = evidence(test, cubic_share=lambda one: 0.1 if one.at["buffer_bdp"] == 0.2 else 0.9)
    criteria = test.criteria(extremes, None)
    assert len(criteria) == 6
    assert verdicts(criteria) == [False] * 6, "although the mean over buffers may be decent"
    assert test.headline(criteria) == "0.10 to 0.90"
    assert verdicts(test.criteria(evidence(test, cubic_share=0.5), None)) == [True] * 6


def test_responsiveness_is_measured_against_cubic() -> None:
    test = Responsiveness()
    cubic = evidence(test, utilization=0.7, queue_delay_ms=8.0)
    assert verdicts(test.criteria(cubic, cubic)) == [True, True], "Cubic is as good as itself"
    assert verdicts(test.criteria(evidence(test, utilization=0.9, queue_delay_ms=9.0), cubic)) == [True, False]
    assert verdicts(test.criteria(cubic, None)) == [None, None], "without Cubic's number nothing is decided"


def test_small_buffers_may_lose_more() -> None:
    test = SelfInflictedLoss()
    criteria = test.criteria(evidence(test, loss=0.02), None)
    assert verdicts(criteria) == [True, False, False, False]
    assert [one.high for one in criteria] == [0.03, 0.01, 0.01, 0.01]


def test_one_collapsed_run_is_too_many() -> None:
    test = StartupRecovery()
    assert verdicts(test.criteria(evidence(test, collapsed=0.0), None)) == [True]
    once = evidence(test, collapsed=lambda one: 0.02 if one.key == "drawn" else 0.0)
    assert verdicts(test.criteria(once, None)) == [False]
    assert test.measure(sample([0, 2e5, 4e5]), test.conditions(quick=True)[0].make(rng()))["collapsed"] == 1.0


def test_never_is_said_of_stale_estimates() -> None:
    test = StaleEstimates()
    found = test.criteria(evidence(test, after_rate_s=10.0, after_rtt_s=0.34), None)
    assert verdicts(found) == [False, True, False, True]
    assert test.headline(found) == "≥ 10 s, 0.3 s"


@pytest.mark.parametrize(
    ("value", "text"), [(0.979, "97.9 %"), (0.0212, "2.12 %"), (0.0, "0 %"), (1.0, "100 %"), (0.05, "5 %"), (None, "–")]
)
def test_fractions_are_shown_as_percent(value: float | None, text: str) -> None:
    assert Measure("m", "m", "%").show(value) == text


# --- Known schemes -------------------------------------------------------------------------------------------------


def cell_of(test: Weakness, scheme: str, **at: float | str) -> Cell:
    """The first condition with these coordinates."""
    chosen = next(one for one in test.conditions(quick=False) if located(**at)(one))
    return Cell(test, parse_scheme(scheme), chosen, 1, 5, chosen.make(rng(5)))


def values(test: Weakness, scheme: str, **at: float | str) -> dict[str, float]:
    return dict(cell_of(test, scheme, **at).execute().values)


def test_a_window_loses_what_exceeds_link_and_buffer() -> None:
    """10 Mbit/s and 40 ms: 34 packets in flight, 17 more in a buffer of half a product."""
    at = {"rate_mbps": 10, "one_way_ms": 20, "buffer_bdp": 0.5}
    fitting = values(BY_NAME["self_inflicted_loss"], "fixed_window:cwnd=40", **at)
    assert fitting["loss"] == 0.0
    assert fitting["utilization"] == pytest.approx(1.0, abs=0.01)
    assert values(BY_NAME["self_inflicted_loss"], "fixed_window:cwnd=10", **at)["utilization"] == pytest.approx(
        10 / 33.3, rel=0.05
    )
    assert values(BY_NAME["self_inflicted_loss"], "fixed_window:cwnd=200", **at)["loss"] > 0.03


def test_a_rate_loses_what_exceeds_the_link() -> None:
    at = {"rate_mbps": 10, "one_way_ms": 20, "buffer_bdp": 0.1}
    lost = values(BY_NAME["self_inflicted_loss"], "fixed_rate:rate_mbps=12.5", **at)["loss"]
    assert lost == pytest.approx(0.2, abs=0.01)


def test_equal_flows_share_equally() -> None:
    at = {"rate_mbps": 10, "buffer_bdp": 4.0}
    assert values(BY_NAME["bandwidth_sweep"], "fixed_window:cwnd=40", **at)["ratio"] > 0.97
    assert values(BY_NAME["bandwidth_sweep"], "copa", **at)["ratio"] > 0.8


def test_known_neighbors_of_cubic() -> None:
    test = BY_NAME["cubic_friendliness"]
    shares = {
        scheme: values(test, scheme, sweep="rate", rate_mbps=10, buffer_bdp=buffer, cubic="first")["cubic_share"]
        for scheme, buffer in (("cubic", 1.0), ("vegas", 1.0), ("bbr", 0.2))
    }
    assert 0.3 < shares["cubic"] < 0.7
    assert shares["vegas"] > 0.7, "it yields"
    assert shares["bbr"] < 0.3, "in shallow buffers it takes nearly all"


def test_both_orders_together_with_cubic_itself_give_half() -> None:
    test = BY_NAME["cubic_friendliness"]
    found = [
        values(test, "cubic", sweep="rate", rate_mbps=rate, buffer_bdp=1.0, cubic=order)["cubic_share"]
        for rate in (10, 20, 30)
        for order in ("first", "second")
    ]
    assert np.mean(found) == pytest.approx(0.5, abs=0.08)


def test_estimates_of_known_schemes() -> None:
    test = BY_NAME["stale_estimates"]
    vegas = values(test, "vegas", rate_mbps=6.0, buffer="first")
    assert vegas["after_rtt_s"] == 10.0, "its least RTT never grows"
    bbr = values(test, "bbr", rate_mbps=6.0, buffer="first")
    assert 0 < bbr["after_rate_s"] < 5
    large = values(test, "fixed_window:cwnd=200", rate_mbps=6.0, buffer="last")
    # A window that suits the last path: noticed as soon as one looks, two round trips of 40 ms after the change.
    assert large["after_rate_s"] < 0.6


def test_acknowledgements_are_killed_for_a_second() -> None:
    test = BY_NAME["startup_recovery"]
    cell = cell_of(test, "fixed_window:cwnd=20", path="reported")
    record = simulate(
        cell.scenario.path, ["fixed_window:cwnd=20"], cell.scenario.duration_s, 1, Record(packets=False, series="50ms")
    )
    assert record.series is not None
    acked = dict(zip(record.series["t_ns"] // 10**6, record.series["flows"][0]["acked_bytes"], strict=True))
    # The silence reaches the sender a one-way delay after the element that makes it.
    assert acked[1100] == acked[2000] > acked[900]
    assert acked[3500] > acked[2100]


# --- Ranges of training --------------------------------------------------------------------------------------------


def test_the_card_tells_the_range_of_training() -> None:
    aurora = range_of_card({"config": {"environment": {"paths": "aurora"}}})
    assert aurora is not None
    assert aurora.text == "1.2–6 Mbit/s, 50–500 ms one way"
    assert aurora.contains(6.0, 50.0)
    assert not aurora.contains(10.0, 100.0)
    assert not aurora.contains(3.0, 10.0)
    inside = {one.key: inside_range(one, aurora) for one in IntraRttFairness().conditions(quick=True)}
    assert set(inside.values()) == {False}
    assert {inside_range(one, None) for one in IntraRttFairness().conditions(quick=True)} == {None}


def test_changing_rates_mixtures_and_stages_have_ranges() -> None:
    genet = range_of_rows(read_paths("genet_rl3").rows())
    assert genet is not None
    assert genet.contains(0.1, 2.0)
    assert genet.contains(100.0, 200.0)
    parts = [
        {"paths": {"kind": "ranges", "rate": "10mbps", "one_way_delay": "10ms", "queue": {"bdp": 1}}},
        {"paths": {"kind": "ranges", "rate": "50mbps", "rtt": "200ms", "queue": {"bdp": 1}}},
    ]
    mixture = range_of_rows(read_paths({"kind": "mixture", "parts": parts}).rows())
    assert mixture is not None
    assert mixture.contains(10, 10)
    assert mixture.contains(50, 100)
    assert not mixture.contains(50, 10), "each part has its own box"
    stages = {"kind": "stages", "stages": [{"until": 0.5, **parts[0]}, {"until": 1.0, **parts[1]}]}
    assert range_of_rows(read_paths(stages).rows()) == mixture


@pytest.mark.parametrize(
    "training",
    [{}, {"config": None}, {"config": {"environment": {}}}, {"config": {"environment": {"paths": "gone.trace"}}}],
)
def test_a_card_that_does_not_tell(training: dict[str, Any]) -> None:
    assert range_of_card(training) is None
