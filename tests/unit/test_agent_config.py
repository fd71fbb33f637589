"""The section ``agent:``: what users write becomes what the core takes, and mistakes say their line."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from ccgym.cli.describe import columns, describe
from ccgym.cli.main import main
from ccgym.config.agent import AgentConfig, read_agent, vocabulary
from ccgym.config.declared import USUAL_BOUNDS, kinds_of
from ccgym.config.distributions import read_distribution
from ccgym.config.expressions import read_amount, read_expression, read_operand, read_operation
from ccgym.config.models import AnyMap, AnyTerm
from ccgym.config.yaml_loader import load_model, parse_yaml
from ccgym.errors import ConfigError, UnitError
from tests.refusals import explained, refused

CONFIGS = Path(__file__).resolve().parents[2] / "configs"

INDIGO = """
name: indigo
clock: {kind: fixed, interval: 10ms, on_ack: true, tick: 1ms}
observation:
  previous_action: one_hot
  initial_action: 4
  features:
    - {signal: ewma_queue_delay, over: 200ms, clip: [0, 100]}
    - {signal: ewma_delivery_rate, over: 200mbps, clip: [0, 100]}
    - {signal: ewma_send_rate, over: 200mbps, clip: [0, 100]}
    - {signal: cwnd, over: 5000p, clip: [0, 1000]}
action:
  map: ["/2", -10, +0, +10, "*2"]
  target: cwnd
  limits: {window: [2, 1e6]}
startup: 10p
"""

MUSES = """
name: muses
clock: {kind: fixed, interval: 10ms, on_ack: true, tick: 1ms}
observation:
  previous_action: one_hot
  features:
    - {signal: ewma_rtt, over: 300ms, clip: [0, 100]}
    - {signal: ewma_queue_delay, over: 300ms, clip: [0, 100]}
    - {signal: ewma_send_rate, over: 1gbps, clip: [0, 100]}
    - {signal: ewma_delivery_rate, over: 1gbps, clip: [0, 100]}
    - undelivered_fraction
    - {signal: cwnd, over: 25000, clip: [0, 1]}
action:
  map: ["/2", "/1.05", "+0", "×1.05", "×2"]
  target: cwnd
  pace: cwnd_over_min_rtt
  limits: {window: [2, 25000]}
startup: {kind: window, packets: 10}
"""

EAGLE = """
name: eagle_v3
clock: {kind: rtt, multiple: 1, of: mean, floor: 10ms, no_ack: 100ms}
observation:
  previous_action: one_hot
  initial_action: 3
  features:
    - {signal: queue_delay, over: min_rtt, clip: [0, 4], name: d}
    - {signal: delivery_rate, over: "max(delivery_rate,10)", clip: [0, 1], name: rho_d}
    - {signal: send_rate, over: "max(delivery_rate, 10)", clip: [0, 4], name: rho_s}
    - loss_fraction
    - {signal: queue_delay, minus: "previous(queue_delay, 1)", over: min_rtt, clip: [-4, 4]}
    - phase_startup
    - phase_drain
    - phase_probe
action:
  map: ["*2.89", "*1.25", "*1.05", "*1", "*0.95", "*0.75", "/2.89"]
  target: rate
  limits: {rate: [100kbps, 10gbps], packets_per_min_rtt: 2}
  cwnd_cap: {bdp: 2, packets: 4, estimate: "max(delivery_rate, 10)"}
reward:
  terms:
    - {term: throughput, weight: 1, over: "max(delivery_rate, 10)"}
    - {term: queue_delay, name: queue_startup, weight: -0.1, unit: min_rtt, max: 2, phase: [startup]}
    - {term: loss, name: loss_startup, weight: -0.5, phase: [startup]}
    - {term: queue_delay, name: queue_late, weight: -1, unit: min_rtt, max: 2, phase: [drain, probe]}
    - {term: loss, name: loss_drain, weight: -1, phase: [drain]}
    - {term: loss, name: loss_probe, weight: -2, phase: [probe]}
startup: {kind: packets_per_rtt, packets: 10}
guard: recovery
"""

MVFST = """
name: mvfst
clock: 100ms
decision_latency: 30ms
observation:
  history: 20
  previous_action: one_hot
  features:
    - {signal: mean_rtt, over: 100ms, clip: [0, 100], history: 1}
    - {signal: interval_max_rtt, over: 100ms, clip: [0, 100], history: 1}
    - {signal: delivery_rate, over: 100mbps, clip: [0, 100], history: 1}
    - {signal: lost_packets, over: 100p, clip: [0, 100], history: 1}
    - {signal: cwnd, over: 1000, clip: [0, 1000]}
action: {map: ["+0", "/2", "-10", "+10", "*2"], target: cwnd}
startup: 10p
"""

PRESETS = {"indigo": INDIGO, "muses": MUSES, "eagle": EAGLE, "mvfst": MVFST}

SMALL: dict[str, Any] = {
    "clock": "10ms",
    "observation": {"features": ["latency_ratio"]},
    "action": {"map": {"kind": "signed_multiply", "delta": 0.025}, "target": "rate"},
    "startup": "3mbps",
}


class File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    agent: AgentConfig


def preset(name: str) -> AgentConfig:
    return read_agent(parse_yaml(PRESETS[name], name).data)


def small(**changes: Any) -> dict[str, Any]:
    return read_agent({**SMALL, **changes}).native()


# --- What users write, and what the core is given -----------------------------------------------------------------


@pytest.mark.parametrize("name", PRESETS)
def test_published_agents_can_be_written_and_written_back(name: str) -> None:
    agent = preset(name)
    assert read_agent(agent.model_dump(mode="json")) == agent
    assert pickle.loads(pickle.dumps(agent)) == agent
    described = agent.describe()
    assert [row["index"] for row in described["observation"]] == list(range(len(described["observation"])))
    assert all(row["low"] < row["high"] for row in described["observation"])
    assert {"name", "unit", "low", "high", "formula"} <= set(described["action"][0])
    assert len(described["reward"]) == len(agent.reward.terms)


def test_quantities_reach_the_core_in_its_units() -> None:
    indigo = preset("indigo").native()
    assert indigo["clock"] == {"kind": "fixed", "interval": 10_000_000, "on_ack": True, "tick": 1_000_000}
    assert [feature["over"] for feature in indigo["observation"]["features"]] == [0.2, 2e8, 2e8, 5000.0]
    assert indigo["action"]["map"] == {"kind": "discrete", "operations": ["/2", "-10", "+0", "+10", "*2"]}
    assert indigo["action"]["limits"]["window"] == [2.0, 1e6]
    assert indigo["startup"] == {"kind": "window", "packets": 10.0}
    eagle = preset("eagle").native()
    assert eagle["observation"]["features"][1]["over"] == "max(delivery_rate, 10)"
    assert eagle["action"]["limits"]["rate"] == [1e5, 1e10]
    assert eagle["guard"]["kind"] == "recovery"
    assert eagle["reward"]["terms"][3]["phase"] == ["drain", "probe"]
    assert preset("mvfst").native()["decision_latency"] == 30_000_000
    json.dumps([preset(name).native() for name in PRESETS], allow_nan=False)


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ({"clock": "10ms"}, {"clock": {"kind": "fixed", "interval": "10ms"}}),
        ({"clock": "0.5 rtt"}, {"clock": {"kind": "rtt", "multiple": 0.5}}),
        ({"startup": "3mbps"}, {"startup": {"kind": "rate", "rate": "3mbps"}}),
        ({"startup": "250 packets/s"}, {"startup": {"kind": "rate", "rate": "3mbps"}}),
        ({"startup": "slow_start"}, {"startup": {"kind": "slow_start"}}),
        ({"guard": "recovery"}, {"guard": {"kind": "recovery", "memory": "60s", "patience": "500ms", "hold": "1s"}}),
        (
            {"observation": {"features": ["send_ratio"]}},
            {"observation": {"features": [{"signal": "send_ratio", "clip": [0, 1000], "empty": 1}]}},
        ),
        (
            {"observation": {"features": [{"signal": "mean(cwnd,  3)", "clip": [0, "50p"]}]}},
            {"observation": {"features": [{"signal": "mean(cwnd, 3)", "clip": [0, 50]}]}},
        ),
    ],
)
def test_short_forms_mean_the_long_ones(short: dict[str, Any], long: dict[str, Any]) -> None:
    assert small(**short) == small(**long)


def test_amounts_expressions_and_operations() -> None:
    assert read_amount("200ms") == 0.2
    assert read_amount("-2ms") == -0.002
    assert read_amount("10 packets/s") == 120_000
    assert read_amount("1.5 Mbit/s") == 1.5e6
    assert read_amount("50p") == 50
    assert read_amount("5%") == 0.05
    assert read_amount(3) == 3.0
    assert read_expression(" max( delivery_rate,10 ) ") == "max(delivery_rate, 10)"
    assert read_operand("min_rtt") == "min_rtt"
    assert [read_operation(value) for value in ("×2", "÷2", "* 1.5", -10, +10, 0)] == [
        "*2",
        "/2",
        "*1.5",
        "-10",
        "+10",
        "+0",
    ]
    for wrong in ("", "2", "**2", "*x", True, None, "+1e3", float("nan")):
        with refused(ConfigError, "text-malformed"):
            read_operation(wrong)
    for wrong in ("*0", "/0"):
        with refused(ConfigError, "out-of-range"):
            read_operation(wrong)
    for wrong in (float("inf"), None, True, [1]):
        with refused(ConfigError, "wrong-type"):
            read_amount(wrong)
    with refused(UnitError, "quantity-malformed"):
        read_amount("ms")
    for wrong in ("max(a)", "max(a, b)", "a + b", "Max(a, 1)", "", None, "max(a, 99999999)"):
        with refused(ConfigError, "text-malformed"):
            read_expression(wrong)
    with refused(UnitError, "unknown-unit"):
        read_amount("5 furlongs")


# --- Mistakes -----------------------------------------------------------------------------------------------------

BASE = """\
agent:
  name: test
  clock: 10ms
  observation:
    features:
      - latency_ratio
  action:
    map: {kind: signed_multiply, delta: 0.025}
    target: rate
  startup: 3mbps
"""


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("clock: 10ms", "clock: -10", "out-of-range at f.yaml:3: agent.clock"),
        ("clock: 10ms", "clock: {kind: [rtt]}", "unknown-kind at f.yaml:3: agent.clock: kind"),
        ("clock: 10ms", "clock: {kind: fixd}", "unknown-kind at f.yaml:3: agent.clock: kind"),
        ("clock: 10ms", "clock: {kind: fixed, interval: 0}", "out-of-range at f.yaml:3: agent.clock.interval"),
        ("clock: 10ms", "clock: {kind: fixed, intervall: 10ms}", "key-missing at f.yaml:3: agent.clock"),
        ("clock: 10ms", "clok: 10ms", "key-missing at f.yaml:1: agent"),
        ("name: test", "name: ' '", "text-malformed at f.yaml:2: agent.name"),
        ("- latency_ratio", "- latency_rato", "key-missing at f.yaml:6: agent.observation.features[0]"),
        ("- latency_ratio", "- cwnd", "key-missing at f.yaml:6: agent.observation.features[0]"),
        (
            "- latency_ratio",
            "- {signal: mean_rt, clip: [0, 1]}",
            "unknown-name at f.yaml:6: agent: observation.features[0].signal",
        ),
        (
            "- latency_ratio",
            "- {signal: latency_ratio, clip: [1, 0]}",
            "order-wrong at f.yaml:6: agent.observation.features[0].clip",
        ),
        (
            "- latency_ratio",
            "- {signal: latency_ratio, clip: [1]}",
            "wrong-type at f.yaml:6: agent.observation.features[0].clip",
        ),
        (
            "- latency_ratio",
            "- {signal: latency_ratio, oevr: 2}",
            "unknown-key at f.yaml:6: agent.observation.features[0].oevr",
        ),
        (
            "- latency_ratio",
            "- {signal: cwnd, over: 5 parsecs, clip: [0, 1]}",
            "unknown-unit at f.yaml:6: agent.observation.features[0].over",
        ),
        (
            "- latency_ratio",
            "- {signal: cwnd, over: 'max(cwnd)', clip: [0, 1]}",
            "text-malformed at f.yaml:6: agent.observation.features[0].over",
        ),
        (
            "- latency_ratio",
            "- {signal: cwnd, minus: mean_rtt, clip: [0, 1]}",
            "agent-invalid at f.yaml:6: agent: observation.features[0].minus",
        ),
        (
            "- latency_ratio",
            "- {signal: cwnd, history: 3, clip: [0, 1]}",
            "agent-invalid at f.yaml:6: agent: observation.features[0].history",
        ),
        ("kind: signed_multiply", "kind: signd_multiply", "unknown-kind at f.yaml:8: agent.action.map: kind"),
        ("{kind: signed_multiply, delta: 0.025}", "['/2', '*0']", "out-of-range at f.yaml:8: agent.action.map[1]"),
        (
            "{kind: signed_multiply, delta: 0.025}",
            "{kind: signed_multiply}",
            "key-missing at f.yaml:8: agent.action.map",
        ),
        ("delta: 0.025", "delta: -1", "out-of-range at f.yaml:8: agent.action.map.delta"),
        ("target: rate", "target: rat", "unknown-choice at f.yaml:9: agent.action.target"),
        (
            "target: rate",
            "target: rate\n    limits: {rate: [5, 3mbps, 4mbps]}",
            "wrong-type at f.yaml:10: agent.action.limits.rate",
        ),
        ("target: rate", "target: rate\n    inner: cubik", "unknown-scheme at agent: action.inner: scheme"),
        ("startup: 3mbps", "startup: 3", "wrong-type at f.yaml:10: agent.startup"),
        ("startup: 3mbps", "startup: slowstart", "unknown-kind at f.yaml:10: agent.startup"),
        ("startup: 3mbps", "startup: rate", "unknown-kind at f.yaml:10: agent.startup"),
        ("startup: 3mbps", "startup: {kind: windw}", "unknown-kind at f.yaml:10: agent.startup: kind"),
        ("startup: 3mbps", "startup: 3mbps\n  guard: recovry", "unknown-kind at f.yaml:11: agent.guard: kind"),
        (
            "startup: 3mbps",
            "startup: 3mbps\n  reward: {terms: [{term: throughptu, weight: 1}]}",
            "unknown-kind at f.yaml:11: agent.reward.terms[0]: term",
        ),
        (
            "startup: 3mbps",
            "startup: 3mbps\n  reward: {terms: [{term: loss}]}",
            "key-missing at f.yaml:11: agent.reward.terms[0]",
        ),
        (
            "startup: 3mbps",
            "startup: 3mbps\n  reward: {terms: [{weight: 1}]}",
            "key-missing at f.yaml:11: agent.reward.terms[0]",
        ),
        (
            "target: rate",
            "target: cwnd\n    inner: {scheme: cubic, params: {x: 1}}",
            "unknown-parameter at f.yaml:10: agent: action.inner: scheme cubic",
        ),
        ("startup: 3mbps", "startup: inner", "agent-invalid at f.yaml:10: agent: startup.kind"),
    ],
)
def test_mistakes_say_their_line(
    tmp_path: Path,
    old: str,
    new: str,
    what: str,
) -> None:
    assert old in BASE
    file = tmp_path / "f.yaml"
    file.write_text(BASE.replace(old, new))
    with refused(ConfigError, what):
        load_model(file, File)


def test_what_the_core_refuses_is_a_config_error_with_its_place() -> None:
    with refused(ConfigError, "unknown-name at observation.features[1].signal"):
        read_agent({**SMALL, "observation": {"features": ["latency_ratio", {"signal": "nothing", "clip": [0, 1]}]}})


# --- The vocabulary -----------------------------------------------------------------------------------------------


def test_usual_signals_are_those_of_the_core() -> None:
    assert set(USUAL_BOUNDS) <= {signal["name"] for signal in vocabulary()["signals"]}


def test_every_map_and_term_is_documented() -> None:
    words = vocabulary()
    assert {term["name"] for term in words["terms"]} == set(kinds_of(AnyTerm, "term"))
    assert {map["name"] for map in words["maps"]} == set(kinds_of(AnyMap))


# --- Files and the command ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", sorted(CONFIGS.glob("*.yaml")), ids=lambda file: file.stem)
def test_every_configuration_loads_and_describes_itself(file: Path) -> None:
    description = describe(str(file))
    assert description["name"] == file.stem
    assert description["environment"]["paths"]["numbers"]
    json.dumps(description)


def test_aurora_is_what_its_authors_published() -> None:
    description = describe("aurora")
    agent = description["agent"]["native"]
    assert agent["clock"]["first_rtts"] == 1.5
    assert agent["clock"]["warm_up_rtts"] == 3
    assert agent["observation"]["history"] == 10
    assert [(f["signal"], f["clip"], f["empty"]) for f in agent["observation"]["features"]] == [
        ("rtt_inflation", [-1, 10], 0), ("latency_ratio", [1, 1e4], 1), ("send_ratio", [0, 1000], 1)
    ]  # fmt: skip
    assert agent["action"]["map"] == {"kind": "signed_multiply", "delta": 0.025}
    assert agent["action"]["limits"]["rate"] == [40 * 12_000, 1000 * 12_000]
    terms = [(term["term"], term["weight"], term.get("unit")) for term in agent["reward"]["terms"]]
    assert terms == [("throughput", 10, "packets/s"), ("latency", -1000, "s"), ("loss", -2000, None)]
    assert agent["reward"]["scale"] == 0.001
    paths = description["environment"]["paths"]
    assert paths == read_distribution("aurora").describe()


def test_orca_is_what_its_authors_published() -> None:
    description = describe("orca")
    agent = description["agent"]["native"]
    assert agent["clock"] == {"kind": "fixed", "interval": 20_000_000, "on_ack": True, "tick": 0}
    assert agent["observation"]["history"] == 10
    assert len(description["agent"]["observation"]) == 70
    action = agent["action"]
    assert action["map"] == {"kind": "exponential", "base": 4}
    assert action["inner"] == {"scheme": "cubic", "params": {"mode": "linux"}}
    assert (action["limits"]["window"][0], action["bounds"], action["pace"]) == (4, [-1, 1], "cwnd_over_srtt")
    assert [(term["term"], term["weight"], term["margin"]) for term in agent["reward"]["terms"]] == [
        ("orca_power", 1, 1.25)
    ]
    assert agent["startup"] == {"kind": "inner", "gain": 1.1}
    assert description["environment"]["paths"] == read_distribution("orca").describe()


def test_columns_know_what_stands_where() -> None:
    mvfst = preset("mvfst")
    size = 4 + 20 * (1 + 5)
    assert len(mvfst.describe()["observation"]) == size
    places = columns(mvfst, size)
    assert len(places) == size
    assert places[0] == (4, 19), "the oldest interval shows the window alone, and the action"
    assert [slot for slot, age in places if age == 0] == list(range(10))
    assert places[-1] == (9, 0)


def test_the_command_describes_a_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", str(CONFIGS / "aurora.yaml")]) == 0
    text = capsys.readouterr().out
    for part in (
        "observation: 30 numbers of 10 intervals, oldest first", "0, 3, … 27 (×10)", "latency_ratio", "-1000",
        "1 + ⌊exp(U(0, 8))⌋", "400 decisions", "0.001 × sum of weight × term",
    ):  # fmt: skip
        assert part in text
    assert main(["describe", str(CONFIGS / "aurora.yaml")]) == 0
    assert capsys.readouterr().out == text, "the same twice"
    assert "\x1b" not in text
    assert main(["describe", str(CONFIGS / "aurora.yaml"), "--full"]) == 0
    assert len(re.findall(r"latency_ratio", capsys.readouterr().out)) >= 10
    assert main(["describe", str(CONFIGS / "aurora.yaml"), "--json", "--set", "agent.observation.history=3"]) == 0
    assert len(json.loads(capsys.readouterr().out)["agent"]["observation"]) == 9
    assert main(["describe", str(CONFIGS / "eagle.yaml")]) == 0
    assert 'its flow: start {"uniform": ["0s", "1s"]}' in capsys.readouterr().out
    assert "  ecn " not in text
    assert main(["describe", str(CONFIGS / "aurora.yaml"), "--set", "agent.ecn=true"]) == 0
    assert "  ecn " in capsys.readouterr().out
    assert main(["describe", "--signals"]) == 0
    assert "latency_ratio" in capsys.readouterr().out


def test_the_command_explains_mistakes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["describe", str(CONFIGS / "aurora.yaml"), "--set", "agent.clokc=1"]) == 2
    explained(capsys.readouterr().err, "unknown-key at agent.clokc")
    assert main(["describe"]) == 2
    explained(capsys.readouterr().err, "argument-missing at config")
    assert main(["describe", str(tmp_path / "none.yaml")]) == 2
    explained(capsys.readouterr().err, "unknown-configuration at config")
