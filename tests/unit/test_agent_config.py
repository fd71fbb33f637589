"""The section ``agent:``: what users write becomes what the core takes, and mistakes say their line."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

from ccgym.cli.describe import columns, describe
from ccgym.cli.main import main
from ccgym.config.agent import read_agent
from ccgym.config.distributions import read_distribution
from ccgym.config.expressions import read_amount, read_expression, read_operand, read_operation
from ccgym.config.yaml_loader import parse_yaml
from ccgym.errors import ConfigError, UnitError
from ccgym.training.config import TrainConfig
from tests.refusals import refused

CONFIGS = Path(__file__).resolve().parents[2] / "configs"


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


SMALL: dict[str, Any] = {
    "clock": "10ms",
    "observation": {"features": ["latency_ratio"]},
    "action": {"map": {"kind": "signed_multiply", "delta": 0.025}, "target": "rate"},
    "startup": "3mbps",
}


def small(**changes: Any) -> dict[str, Any]:
    return read_agent({**SMALL, **changes}).native()


# --- What users write, and what the core is given -----------------------------------------------------------------


@pytest.mark.parametrize("file", sorted(CONFIGS.glob("*.yaml")), ids=lambda file: file.stem)
def test_published_agents_can_be_written_and_written_back(file: Path) -> None:
    agent = TrainConfig.load(file).agent
    assert read_agent(agent.model_dump(mode="json")) == agent
    assert pickle.loads(pickle.dumps(agent)) == agent
    described = agent.describe()
    assert [row["index"] for row in described["observation"]] == list(range(len(described["observation"])))
    assert all(row["low"] < row["high"] for row in described["observation"])
    assert {"name", "unit", "low", "high", "formula"} <= set(described["action"][0])
    assert len(described["reward"]) == len(agent.reward.terms)


def test_quantities_reach_the_core_in_its_units() -> None:
    over = {"ewma_queue_delay": "200ms", "ewma_send_rate": "200mbps", "cwnd": "5000p", "send_rate": "max(send_rate,10)"}
    agent = small(
        clock={"kind": "fixed", "interval": "10ms", "on_ack": True, "tick": "1ms"},
        decision_latency="30ms",
        observation={"features": [{"signal": one, "over": by, "clip": [0, 100]} for one, by in over.items()]},
        action={"map": ["/2", -10, 0, "×2"], "target": "cwnd", "limits": {"rate": ["100kbps", "10gbps"]}},
        startup="10p",
        guard="recovery",
        reward={"terms": [{"term": "loss", "weight": -1, "phase": ["drain", "probe"]}]},
    )
    assert agent["clock"] == {"kind": "fixed", "interval": 10_000_000, "on_ack": True, "tick": 1_000_000}
    assert agent["decision_latency"] == 30_000_000
    divisors = [feature["over"] for feature in agent["observation"]["features"]]
    assert divisors == [0.2, 2e8, 5000.0, "max(send_rate, 10)"]
    assert agent["action"]["map"] == {"kind": "discrete", "operations": ["/2", "-10", "+0", "*2"]}
    assert agent["action"]["limits"]["rate"] == [1e5, 1e10]
    assert agent["startup"] == {"kind": "window", "packets": 10.0}
    assert agent["guard"]["kind"] == "recovery"
    assert agent["reward"]["terms"][0]["phase"] == ["drain", "probe"]
    json.dumps(agent, allow_nan=False)


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
    mvfst = read_agent(parse_yaml(MVFST, "mvfst").data)
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
