"""Experiments in YAML: placeholders, draws, sweeps, mistakes with their line, transfers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ccgym.errors import ConfigError, NotFoundError, SchemeNotFoundError
from ccgym.experiments.draws import read_draw
from ccgym.experiments.expand import conditions
from ccgym.experiments.load import load_experiment
from ccgym.experiments.placeholders import Names, Quantity, substitute
from ccgym.experiments.spec import ExperimentSet, ExperimentSpec
from ccgym.experiments.transfers import expanded
from ccgym.schemes.flow import flow_spec
from ccgym.units import Nanoseconds
from tests.refusals import refused


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


# --- Placeholders --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$rate", "10mbps"),
        ("$(2 * owd)", Nanoseconds(40_000_000)),
        ("$(8 * rate)", "80mbps"),
        ("$(rtt + owd)", Nanoseconds(60_000_000)),
        ("$(rtt / owd)", 2),
        ("$(ceil(1.5 * bdp(rate, rtt)))p", "50p"),
        ("$(packet_time(rate))", Nanoseconds(1_200_000)),
        ("$(max(rtt, 3 * owd))", Nanoseconds(60_000_000)),
        ("$(-(1 - 3) / 4)", 0.5),
        ("buffer of $buffer at $rate", "buffer of 0.2bdp at 10mbps"),
        ("$scheme", "$scheme"),
        ([{"start": "$(3 * buffer)"}], [{"start": "0.6bdp"}]),
        (7, 7),
    ],
)
def test_placeholders(text: Any, expected: Any) -> None:
    names = Names({"rate": "10mbps", "owd": "20ms", "rtt": "$(2 * owd)", "buffer": "0.2bdp"})
    assert substitute(text, names) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$rat", "unknown-name"),
        ("$(rate + owd)", "unit-mismatch at $(rate + owd)"),
        ("$(rate * owd)", "unit-mismatch at $(rate * owd)"),
        ("$(cel(3))", "unknown-name at $(cel(3))"),
        ("$(ceil())", "wrong-count at $(ceil())"),
        ("$(packet_time(owd))", "unit-mismatch at $(packet_time(owd))"),
        ("$(__import__('os'))", "unknown-name at $(__import__('os'))"),
        ("$(rate.real)", "text-malformed at $(rate.real)"),
        ("$(1 / 0)", "text-malformed"),
        ("$(2 *)", "text-malformed"),
        ("$(2 * (owd)", "text-malformed"),
        ("$", "text-malformed"),
        ("$a", "circular"),
        ("$(2 * word)", "quantity-malformed at $(2 * word)"),
    ],
)
def test_placeholders_that_make_no_sense(text: str, expected: str) -> None:
    names = Names({"rate": "10mbps", "owd": "20ms", "a": "$b", "b": "$a", "word": "first"})
    with refused(ConfigError, expected):
        substitute(text, names)


# --- Draws ---------------------------------------------------------------------------------------------------------


def test_draws_lie_within_their_bounds_and_in_their_unit() -> None:
    for given, low, high, unit in (
        ({"uniform": ["10ms", "100ms"]}, 10e6, 100e6, "time"),
        ({"log_uniform": ["5mbps", "100mbps"]}, 5e6, 100e6, "rate"),
        ({"uniform": [1, 1.05]}, 1.0, 1.05, ""),
        ({"choice": ["1mbps", "4mbps"]}, 1e6, 4e6, "rate"),
        ({"grid": ["10ms", "100ms"], "step": "0.5ms"}, 10e6, 100e6, "time"),
    ):
        draw = read_draw(given)
        drawn = [draw.value(rng(seed), 10**9) for seed in range(200)]
        assert draw.bounds == (low, high)
        assert {one.unit for one in drawn} == {unit}
        assert low <= min(one.value for one in drawn) <= max(one.value for one in drawn) <= high
        assert len({one.value for one in drawn}) > 1
    assert {one.value % 500_000 for one in drawn} == {0.0}, "multiples of the step"


def test_a_draw_with_a_period_has_steps() -> None:
    steps = read_draw({"grid": ["1mbps", "100mbps"], "step": "1mbps", "every": "10s"}).value(rng(), 25 * 10**9)
    assert [at for at, _ in steps] == [0, 10 * 10**9, 20 * 10**9]
    assert len({rate for _, rate in steps}) == 3
    assert all(1 <= int(rate.removesuffix("mbps")) <= 100 for _, rate in steps)


def walked(seconds: int, **walk: Any) -> list[float]:
    steps = read_draw({"every": "100ms", **walk}).value(rng(), seconds * 10**9)
    return [Quantity.read(value).value for _, value in steps]


def test_a_walk_is_ccperfs() -> None:
    free = walked(2000, walk=[-1e9, 1e9], noise=0.5, correlation=0.6)
    assert free[0] == 0
    changes = np.diff(free)
    # A first-order autoregression: deviation σ / √(1 − ρ²), correlation ρ at lag one.
    assert changes.std() == pytest.approx(0.5 / 0.8, rel=0.05)
    assert np.corrcoef(changes[:-1], changes[1:])[0, 1] == pytest.approx(0.6, abs=0.03)
    held = walked(100, walk=["2mbps", "20mbps"], noise="2mbps", start="3mbps")
    assert held[0] == 3e6
    assert (min(held), max(held)) == (2e6, 20e6), "it comes to both bounds, and not beyond"
    assert held == walked(100, walk=["2mbps", "20mbps"], noise="2mbps", start="3mbps"), "one seed, one walk"
    assert set(walked(10, walk=["10ms", "30ms"], noise="0ms")) == {20e6}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"unifrom": [1, 2]}, "key-missing"),
        ({"uniform": ["10ms", "1mbps"]}, "unknown-unit at uniform"),
        ({"uniform": ["1bdp", "2bdp"]}, "unit-mismatch"),
        ({"grid": ["10ms", "1mbps"], "step": "1ms"}, "order-wrong"),
        ({"grid": ["10ms", "20ms"]}, "key-missing"),
        ({"grid": ["10ms", "20ms"], "step": "1ms", "evry": "1s"}, "unknown-key"),
        ({"walk": ["10ms", "20ms"], "noise": "1ms"}, "key-missing"),
        ({"walk": ["10ms", "20ms"], "noise": "1mbps", "every": "1s"}, "order-wrong"),
        ({"walk": [0, 0.1], "noise": 0.1, "every": "1s", "start": 0.2}, "order-wrong"),
        ({"walk": [0, 0.1], "noise": 0.1, "every": "1s", "correlation": 2}, "out-of-range"),
        ({"walk": [0, 0.1], "noise": 0.1, "every": "1s", "sigma": 2}, "unknown-key"),
        ("uniform", "key-missing"),
    ],
)
def test_draws_that_make_no_sense(given: Any, expected: str) -> None:
    with refused(ConfigError, expected):
        read_draw(given)


# --- Sweeps --------------------------------------------------------------------------------------------------------


def made(**parts: Any) -> ExperimentSpec:
    whole = {"name": "one", "title": "One", "metrics": {"utilization": {}}, "path": "12mbps", **parts}
    return ExperimentSpec.model_validate(whole)


def test_a_sweep_is_every_combination_and_the_first_varies_fastest() -> None:
    found = conditions(
        made(sweep={"rate": ["1mbps", "2mbps"], "buffer": ["1bdp"], "order": {"up": {"a": 1}, "down": {"a": 2}}})
    )
    assert [one.key for one in found] == [
        "rate=1mbps,buffer=1bdp,order=up", "rate=2mbps,buffer=1bdp,order=up",
        "rate=1mbps,buffer=1bdp,order=down", "rate=2mbps,buffer=1bdp,order=down",
    ]  # fmt: skip
    assert found[2].at == {"rate_mbps": 1.0, "buffer_bdp": 1.0, "order": "down"}


def test_values_can_vary_together_and_scenarios_add_their_own() -> None:
    found = conditions(
        made(
            sweep={"buffer": ["1p", "2p"]},
            scenarios={"a": {"sweep": {"rate, owd": [["1mbps", "5ms"], ["2mbps", "9ms"]]}}, "b": {}},
        )
    )
    assert [one.key for one in found][:3] == [
        "rate=1mbps,owd=5ms,buffer=1p", "rate=2mbps,owd=9ms,buffer=1p", "rate=1mbps,owd=5ms,buffer=2p",
    ]  # fmt: skip
    assert [one.key for one in found][4:] == ["buffer=1p", "buffer=2p"]


def test_paths_are_swept_over_by_name() -> None:
    slow = {"rate": "$rate", "rtt": "20ms"}
    found = conditions(made(path=None, paths={"slow": slow, "named": "12mbps"}, parameters={"rate": "1mbps"}))
    assert [one.key for one in found] == ["path=slow", "path=named"]
    assert found[0].make(rng()).path.mean_rate_mbps == 1.0


def test_the_tested_scheme_takes_its_place_among_the_flows() -> None:
    flows = [{"scheme": "cubic"}, {"scheme": "$scheme", "start": "$(2 * late)", "source": "5MB"}]
    (condition,) = conditions(made(flows=flows, parameters={"late": "1s"}))
    cubic, tested = condition.make(rng()).flows_of([flow_spec("fixed_window:cwnd=7")])
    assert (cubic.scheme, tested.scheme, dict(tested.params)) == ("cubic", "fixed_window", {"cwnd": 7})
    assert (tested.start_ns, tested.source.kind) == (2 * 10**9, "bytes")
    (plain,) = conditions(made())
    both = [flow_spec("bbr"), flow_spec({"scheme": "cubic", "start": "5s"})]
    assert list(plain.make(rng()).flows_of(both)) == both, "a contender of several flows brings them along"
    with refused(ConfigError, "scheme-unsuitable at flows[1]"):
        condition.make(rng()).flows_of(both)


# --- Mistakes ------------------------------------------------------------------------------------------------------

GOOD = """\
title: One
sweep:
  rate: [5mbps, 10mbps]
path: {rate: $rate, rtt: 20ms, queue: 1bdp}
flows:
  - {scheme: cubic}
  - {scheme: $scheme, start: 2s}
duration: 10s
metrics:
  utilization: {from: 1s}
criteria:
  - {metric: utilization, min: 0.5, per: rate}
"""


def test_an_experiment_is_read(tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(GOOD)
    found = load_experiment(file)
    assert isinstance(found, ExperimentSet)
    assert (found.name, found.title, [one.name for one in found.experiments]) == ("one", "One", ["one"])


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("title: One", "titel: One", "key-missing at one.yaml"),
        ("sweep:", "sweeps:", "unknown-key at one.yaml:2: sweeps"),
        ("[5mbps, 10mbps]", "[]", "wrong-count at one.yaml:3: sweep.rate"),
        ("$rate", "$rats", "unknown-name at one.yaml:4: path"),
        ("rtt: 20ms", "rtt: 20sm", "unknown-unit at one.yaml:4: path: rtt"),
        ("queue: 1bdp", "queue: 1bpd", "unknown-unit at one.yaml:4: path: queue"),
        ("utilization: {from", "utilisation: {from", "unknown-metric at one.yaml:10: metrics.utilisation"),
        ("from: 1s", "form: 1s", "unknown-key at one.yaml:10: metrics.utilization: form"),
        ("min: 0.5", "least: 0.5", "unknown-key at one.yaml:12: criteria[0].least"),
        (", min: 0.5", "", "key-missing at one.yaml:12: criteria[0]: criteria"),
        ("per: rate", "per: rates", "unknown-name at one.yaml:12: criteria[0]"),
        ("per: rate", "schemes: [coppa]", "unknown-scheme at one.yaml:12: criteria[0].schemes"),
        ("metric: utilization", "metric: utilisation", "unknown-name at one.yaml:12: criteria[0]"),
    ],
)
def test_mistakes_are_found_with_their_line(tmp_path: Path, old: str, new: str, what: str) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(GOOD.replace(old, new, 1))
    with refused((ConfigError, SchemeNotFoundError), what):
        load_experiment(file)


def test_what_quick_changes_is_checked_although_nobody_asked_for_it(tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(GOOD + "quick: {sweep: {rat: [5mbps]}, path: {rate: $rrate}}\n")
    with refused(ConfigError, "unknown-name at one.yaml:4: path"):
        load_experiment(file)


def test_an_unknown_experiment_is_refused_with_a_near_miss() -> None:
    with refused(NotFoundError, "unknown-configuration at --experiment"):
        load_experiment("weakneses")


# --- Those that come with ccgym ------------------------------------------------------------------------------------


LOG_UNIFORM = {"kind": "log_uniform", "min": "10kB", "max": "1MB"}


def test_transfers_are_a_poisson_process_that_every_scheme_meets() -> None:
    entry = {"every": "100ms", "from": "2s", "to": "42s", "size": LOG_UNIFORM}
    flows = [{"scheme": "reno"}, {"scheme": "$scheme", "profile": "tcp", "transfers": entry}]
    drawn = expanded(flows, rng(3))
    assert drawn == expanded(flows, rng(3)) != expanded(flows, rng(4))
    assert drawn[0] == {"scheme": "reno"}
    starts = np.array([float(one["start"]) / 1e9 for one in drawn[1:]])
    assert 2 <= starts.min() <= starts.max() < 42
    gaps = np.diff(starts)
    assert len(starts) == pytest.approx(400, abs=60)
    assert gaps.mean() == pytest.approx(0.1, rel=0.2) == gaps.std(), "exponential: both are the mean"
    read = [flow_spec({**one, "scheme": "reno"}) for one in drawn[1:]]
    sizes = np.array([one.source.native()["bytes"] for one in read])
    assert 10_000 <= sizes.min() <= sizes.max() <= 1_000_000
    assert np.median(sizes) == pytest.approx(100_000, rel=0.3)


def test_transfers_offer_a_load() -> None:
    """A rate in place of the gap: what they offer is that of any law, here a measured table."""
    table = {"kind": "table", "sizes": ["1kB", "10kB", "100kB", "1MB"], "fractions": [0.1, 0.5, 0.9, 1.0]}
    entry = {"rate": "6mbps", "to": "40s", "size": table}
    drawn = expanded([{"scheme": "reno", "transfers": entry}], rng(5))
    sizes = np.array([flow_spec(one).source.native()["bytes"] for one in drawn])
    assert sizes.min() >= 1000
    assert sizes.max() <= 1_000_000
    assert sizes.sum() * 8 / 40 == pytest.approx(6e6, rel=0.2)
    assert np.mean(sizes <= 10_000) == pytest.approx(0.5, abs=0.07)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"transfers": {"every": "1s", "to": "5s"}}, "key-missing at [0].transfers: size"),
        ({"transfers": {"every": "1us", "to": "5s", "size": "1kB"}}, "wrong-type at [0].transfers"),
        ({"transfers": {"rate": "1gbps", "to": "5s", "size": "1kB"}}, "wrong-type at [0].transfers"),
        (
            {"transfers": {"every": "1s", "to": "5s", "size": {"kind": "parteo"}}},
            "unknown-kind at [0].transfers: size: kind",
        ),
        (
            {"transfers": {"every": "1s", "to": "5s", "size": {**LOG_UNIFORM, "max": "1kB"}}},
            "wrong-type at [0].transfers",
        ),
        ({"transfers": {"to": "5s", "size": "1kB"}}, "wrong-type at [0].transfers"),
        ({"transfers": {"every": "1s", "rate": "1mbps", "to": "5s", "size": "1kB"}}, "wrong-type at [0].transfers"),
        ({"transfers": {"every": "1s", "to": "5s", "size": "1kB"}, "start": "1s"}, "options-conflict at [0].transfers"),
    ],
)
def test_transfers_that_make_no_sense(changes: dict[str, Any], message: str) -> None:
    with refused(ConfigError, message):
        expanded([{"scheme": "reno", **changes}], rng())


def test_copies_are_equal_flows() -> None:
    flows = [{"scheme": "$scheme", "source": "64kB", "copies": 3.0}, {"scheme": "reno"}]
    assert expanded(flows, rng()) == [{"scheme": "$scheme", "source": "64kB"}] * 3 + [{"scheme": "reno"}]


@pytest.mark.parametrize(
    ("copies", "code"),
    [(0, "out-of-range"), (1001, "out-of-range"), (1.5, "wrong-type"), ("two", "wrong-type"), (True, "wrong-type")],
)
def test_copies_that_make_no_sense(copies: Any, code: str) -> None:
    with refused(ConfigError, f"{code} at [0]"):
        expanded([{"scheme": "reno", "copies": copies}], rng())
    with refused(ConfigError, "wrong-type at [0]"):
        expanded([{"scheme": "reno", "copies": 2, "transfers": {}}], rng())


def test_quantities_know_their_coordinates() -> None:
    assert Quantity.read("0.5s").coordinate() == ("ms", 500.0)
    assert Quantity.read("2gbps").coordinate() == ("mbps", 2000.0)
    assert Quantity.read(3).coordinate() == ("", 3.0)
