"""What configurations, agents, paths and mahimahi's command lines refuse: the code of the error, and its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from ccgym.config.agent import AgentConfig
from ccgym.config.curriculum import PathsField
from ccgym.config.mahimahi import parse_command_line
from ccgym.config.path import NetworkPath
from ccgym.config.yaml_loader import load_model
from ccgym.errors import CcgymError, ConfigError
from tests.refusals import refused


class File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    paths: PathsField = "aurora"  # type: ignore[assignment]
    agent: AgentConfig | None = None


def refuses(folder: Path, text: str, what: str) -> None:
    (folder / "f.yaml").write_text(text)
    with refused(ConfigError, what):
        load_model(folder / "f.yaml", File)


PATHS = [
    ("auroa", "unknown-path at paths"),
    ("77.72mbp", "unknown-path at paths"),
    ("{kind: rangs}", "unknown-kind at paths: kind"),
    ("{rate: 3mbps, rtt: 3ms}", "key-missing at paths"),
    ("5", "wrong-type at paths"),
    ("{kind: ranges, rtt: 3ms}", "key-missing at paths"),
    ("{kind: ranges, rate: 3mbps}", "exactly-one at paths"),
    ("{kind: ranges, rate: 3mbps, rtt: 5ms, one_way_delay: 3ms}", "exactly-one at paths"),
    ("{kind: ranges, rate: 3mbps, rtt: -5}", "out-of-range at paths.rtt"),
    ("{kind: ranges, rtt: 5ms, rate: {uniform: [1, 5]}}", "unit-missing at ranges.rate.number: uniform"),
    ("{kind: ranges, rtt: 5ms, rate: {unifrm: [1mbps, 5mbps]}}", "unknown-key at ranges.rate.number: unifrm"),
    ("{kind: ranges, rtt: 5ms, rate: {max: 3mbps, every: 1s}}", "key-missing at paths.rate"),
    ("{kind: ranges, rtt: 5ms, rate: {top: 3mbps, period: 1us}}", "out-of-range at ranges.rate.staircase: period"),
    ("{kind: ranges, rtt: 5ms, rate: {top: 3mbps}}", "key-missing at paths.rate"),
    ("{kind: ranges, rtt: 5ms, rate: 3mbps, queue: 94}", "unit-missing at paths.queue"),
    ("{kind: ranges, rtt: 5ms, rate: 3mbps, queue: 30kB}", "unit-mismatch at paths.queue"),
    ("{kind: ranges, rtt: 5ms, rate: 3mbps, queue: {packets: 5, bdp: 1}}", "exactly-one at paths.queue"),
    ("{kind: ranges, rtt: 0ms, rate: 3mbps, queue: 1bdp}", "path-without-delay at ranges: queue"),
    ("{kind: ranges, rtt: 5ms, rate: 3mbps, loss: 2}", "out-of-range at paths.loss"),
    ("{kind: ranges, rtt: 5ms, rate: 3mbps, losss: 2}", "unknown-key at paths.losss"),
    (
        "{kind: ranges, rtt: 5ms, rate: 3mbps, start_rate: {constant: 1, of: rat}}",
        "unknown-name at ranges.start_rate: of",
    ),
    ("{kind: traces, rtt: 5ms, uplink: [12mbps, 12mbs]}", "unknown-trace at traces: uplink[1]"),
    ("{kind: traces, rtt: 5ms, uplink: [12mbps], downlink: [12mbps, 5mbps]}", "wrong-count at traces: downlink"),
    ("{kind: named, names: [pantheon-1], weights: [1, 2]}", "wrong-count at named: weights"),
    ("{kind: mixture, parts: [{weight: 0, paths: aurora}]}", "out-of-range at paths.parts[0].weight"),
    ("{kind: mixture, parts: [{paths: arora}]}", "unknown-path at paths.parts[0].paths"),
    ("{kind: stages, stages: [{until: 0.5, paths: aurora}]}", "out-of-range at paths.stages: stages[0].until"),
]

LINES = [
    (
        "paths:\n  kind: ranges\n  rtt: 5ms\n  rate:\n    every: 1s\n    max: 3mbps\n    min: 4mbps\n",
        "order-wrong at 7: paths.distribution.ranges.rate.changing: min",
    ),
    (
        "paths:\n  kind: named\n  names:\n    - 77.72mbps\n    - patheon-1\n",
        "unknown-path at 5: paths.distribution.named: names[1]",
    ),
    (
        "paths:\n  kind: stages\n  stages:\n    - {until: 0.5, paths: aurora}\n    - {until: 0.5, paths: indigo}\n",
        "order-wrong at 5: paths.stages: stages[1].until",
    ),
]

AGENT = """\
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

AGENTS: dict[str, list[tuple[str, str]]] = {
    "clock: 10ms": [
        ("clock: -10", "out-of-range at 3: agent.clock"),
        ("clock: {kind: [rtt]}", "unknown-kind at 3: agent.clock: kind"),
        ("clock: {kind: fixd}", "unknown-kind at 3: agent.clock: kind"),
        ("clock: {kind: fixed, interval: 0}", "out-of-range at 3: agent.clock.interval"),
        ("clock: {kind: fixed, intervall: 10ms}", "key-missing at 3: agent.clock"),
        ("clok: 10ms", "key-missing at 1: agent"),
    ],
    "name: test": [
        ("name: ' '", "text-malformed at 2: agent.name"),
    ],
    "- latency_ratio": [
        ("- latency_rato", "key-missing at 6: agent.observation.features[0]"),
        ("- cwnd", "key-missing at 6: agent.observation.features[0]"),
        ("- {signal: mean_rt, clip: [0, 1]}", "unknown-name at 6: agent: observation.features[0].signal"),
        ("- {signal: latency_ratio, clip: [1, 0]}", "order-wrong at 6: agent.observation.features[0].clip"),
        ("- {signal: latency_ratio, clip: [1]}", "wrong-type at 6: agent.observation.features[0].clip"),
        ("- {signal: latency_ratio, oevr: 2}", "unknown-key at 6: agent.observation.features[0].oevr"),
        ("- {signal: cwnd, over: 5 parsecs, clip: [0, 1]}", "unknown-unit at 6: agent.observation.features[0].over"),
        (
            "- {signal: cwnd, over: 'max(cwnd)', clip: [0, 1]}",
            "text-malformed at 6: agent.observation.features[0].over",
        ),
        ("- {signal: cwnd, minus: mean_rtt, clip: [0, 1]}", "agent-invalid at 6: agent: observation.features[0].minus"),
        ("- {signal: cwnd, history: 3, clip: [0, 1]}", "agent-invalid at 6: agent: observation.features[0].history"),
    ],
    "kind: signed_multiply": [
        ("kind: signd_multiply", "unknown-kind at 8: agent.action.map: kind"),
    ],
    "{kind: signed_multiply, delta: 0.025}": [
        ("['/2', '*0']", "out-of-range at 8: agent.action.map[1]"),
        ("{kind: signed_multiply}", "key-missing at 8: agent.action.map"),
    ],
    "delta: 0.025": [
        ("delta: -1", "out-of-range at 8: agent.action.map.delta"),
    ],
    "target: rate": [
        ("target: rat", "unknown-choice at 9: agent.action.target"),
        ("target: rate\n    limits: {rate: [5, 3mbps, 4mbps]}", "wrong-type at 10: agent.action.limits.rate"),
        ("target: rate\n    inner: cubik", "unknown-scheme at agent: action.inner: scheme"),
        (
            "target: cwnd\n    inner: {scheme: cubic, params: {x: 1}}",
            "unknown-parameter at 10: agent: action.inner: scheme cubic",
        ),
    ],
    "startup: 3mbps": [
        ("startup: 3", "wrong-type at 10: agent.startup"),
        ("startup: slowstart", "unknown-kind at 10: agent.startup"),
        ("startup: rate", "unknown-kind at 10: agent.startup"),
        ("startup: {kind: windw}", "unknown-kind at 10: agent.startup: kind"),
        ("startup: 3mbps\n  guard: recovry", "unknown-kind at 11: agent.guard: kind"),
        (
            "startup: 3mbps\n  reward: {terms: [{term: throughptu, weight: 1}]}",
            "unknown-kind at 11: agent.reward.terms[0]: term",
        ),
        ("startup: 3mbps\n  reward: {terms: [{term: loss}]}", "key-missing at 11: agent.reward.terms[0]"),
        ("startup: 3mbps\n  reward: {terms: [{weight: 1}]}", "key-missing at 11: agent.reward.terms[0]"),
        ("startup: inner", "agent-invalid at 10: agent: startup.kind"),
    ],
}

ARGUMENTS: list[tuple[str, dict[str, Any]]] = [
    ("unit-missing at rtt", {"rate": "12mbps", "rtt": 15}),
    ("unit-missing at rtt", {"rate": "12mbps", "rtt": 0.015}),
    ("unit-missing at rtt", {"rate": "12mbps", "rtt": "15"}),
    ("unit-missing at jitter", {"rate": "12mbps", "rtt": "20ms", "jitter": 1}),
    ("unit-missing at rate", {"rate": 50, "rtt": "1ms"}),
    ("out-of-range at rtt", {"rate": "50mbps", "rtt": -1}),
    ("quantity-malformed at rtt", {"rate": "50mbps", "rtt": True}),
    ("unknown-key at path", {"bandwidth": "50mbps", "rtt": "1ms"}),
    ("unknown-key at path", {"rate": "50mbps", "Latency": "1ms"}),
    ("unknown-key at path", {"rate": "50mbps", "rtt": "1ms", "buffer": "5p"}),
    ("unknown-kind at queue", {"rate": "50mbps", "rtt": "1ms", "queue": "WRED"}),
    ("unknown-kind at queue", {"rate": "50mbps", "rtt": "1ms", "queue": "l4s"}),
    ("unit-ambiguous at loss", {"rate": "50mbps", "rtt": "1ms", "loss": 1}),
    ("argument-missing at path", {"rate": "50mbps"}),
    ("exactly-one at path", {"rtt": "5ms"}),
    ("exactly-one at path", {"rate": "5mbps", "trace": "x", "rtt": "5ms"}),
    ("unknown-key at path", {"rat": "5mbps"}),
    ("options-conflict at path", {"named": "77.72mbps", "overhead": 0}),
    ("options-conflict at path", {"named": "77.72mbps", "rate": "5mbps", "trace": "12mbps"}),
    ("path-without-link at path", {"mahimahi": "mm-delay 5", "queue": "5p"}),
    ("unknown-path", {"named": "77.72mbp"}),
    ("unit-missing at queue", {"rate": "5mbps", "rtt": "1ms", "queue": 40}),
    ("unknown-kind at queue", {"rate": "5mbps", "rtt": "1ms", "queue": "coddel"}),
    ("unknown-kind at queue", {"rate": "5mbps", "rtt": "1ms", "queue": "RED"}),
    ("key-missing at queue", {"rate": "5mbps", "rtt": "1ms", "queue": "droptail"}),
    ("unknown-key at queue.limt", {"rate": "5mbps", "rtt": "1ms", "queue": {"kind": "codel", "limt": "5p"}}),
    ("out-of-range at loss", {"rate": "5mbps", "rtt": "1ms", "loss": 5}),
    ("order-wrong at rate", {"rate": [("1s", "5mbps")], "rtt": "1ms"}),
    ("order-wrong at rate", {"rate": [("0s", "5mbps"), ("0s", "6mbps")], "rtt": "1ms"}),
    ("unknown-kind at elements[0]: kind", {"rate": "5mbps", "rtt": "1ms", "elements": [{"kind": "gilbert"}]}),
    ("wrong-type at elements", {"rate": "5mbps", "rtt": "1ms", "elements": "loss"}),
    (
        "unknown-kind at jitter.distribution: kind",
        {"rate": "5mbps", "rtt": "1ms", "jitter": {"distribution": {"kind": "norml"}}},
    ),
    ("option-needed at path", {"rate": "5mbps", "rtt": "1ms", "reverse_queue": "5p"}),
    ("exactly-one at chain[0].link.uplink", {"chain": [{"kind": "link", "uplink": {"rate": "5mbps", "trace": "x"}}]}),
]

MAHIMAHI = {
    "mahimahi-syntax": [""],
    "mahimahi-value at word 2 (mm-delay)": ["mm-delay 1.5", "mm-delay 51ms", "mm-delay -5", "mm-delay 99999999999"],
    "mahimahi-syntax at word after the last (mm-delay)": ["mm-delay"],
    "mahimahi-unknown-word at word 1": ["mm-dealy 5", "sudo mm-delay 5"],
    "mahimahi-value at word 3 (mm-loss)": ["mm-loss uplink 5%", "mm-loss uplink 1.5"],
    "mahimahi-unknown-word at word 2 (mm-loss)": ["mm-loss uplnk 0.1", "mm-loss 0.1"],
    "mahimahi-value at word 3 (mm-onoff)": ["mm-onoff uplink 1s 2", "mm-onoff uplink 0 2"],
    "mahimahi-syntax at word 1 (mm-link)": ["mm-link a", "mm-link a -- b"],
    "mahimahi-syntax at word 2 (mm-link)": ["mm-link mm-delay 5"],
    "mahimahi-unknown-word at (mm-link --uplink-queue)": ["mm-link a b --uplink-queue=drptail"],
    "mahimahi-syntax at (mm-link --uplink-queue-args of droptail)": ["mm-link a b --uplink-queue=droptail"],
    "mahimahi-syntax at (mm-link --uplink-queue-args of infinite)": [
        "mm-link a b --uplink-queue=infinite --uplink-queue-args=packets=5",
        "mm-link a b --uplink-queue-args=packets=5",
    ],
    "mahimahi-unknown-word at (mm-link --uplink-queue-args of droptail)": [
        "mm-link a b --uplink-queue=droptail --uplink-queue-args=packet=5",
        "mm-link a b --uplink-queue=droptail --uplink-queue-args=packets=5,target=3",
    ],
    "mahimahi-value at (mm-link --uplink-queue-args of droptail)": [
        "mm-link a b --uplink-queue=droptail --uplink-queue-args=packets=5.5",
        "mm-link a b --uplink-queue=droptail --uplink-queue-args=packets=0",
    ],
    "duplicate at (mm-link --uplink-queue-args of droptail)": [
        "mm-link a b --uplink-queue=droptail --uplink-queue-args=packets=5,packets=6"
    ],
    "mahimahi-syntax at (mm-link --uplink-queue-args of codel)": [
        "mm-link a b --uplink-queue=codel --uplink-queue-args=packets=5"
    ],
    "duplicate at word 5 (mm-link)": ["mm-link a b --uplink-queue=droptail --uplink-queue=codel"],
    "mahimahi-unknown-word at word 4 (mm-link)": ["mm-link a b --uplik-log=x"],
    "mahimahi-syntax at word 4 (mm-link)": ["mm-link a b --once=yes", "mm-link a b iperf -c x"],
    "mahimahi-syntax at word after the last (mm-link)": ["mm-link a b --uplink-queue"],
    "mahimahi-syntax at word 5": ["mm-link a b -- ./run"],
    "mahimahi-syntax at word 3": ["mm-delay 5 bash"],
    "mahimahi-syntax at word 7 (mm-link)": ["mm-link a b mm-link c d --once"],
    "mahimahi-syntax at mahimahi command": ["mm-delay 5 'x"],
    "mahimahi-value at word 10 (mm-loss)": ["mm-link a b --once -- mm-delay 3 mm-loss uplink 2"],
}

WITH_A_COMMAND = {
    "mahimahi-syntax": [""],
    "mahimahi-unknown-word at word 1": ["mm-dealy 5", "ping host"],
    "mahimahi-unknown-word at word 3": ["mm-delay 5 mm-lnik a b", "mm-delay 5 --once"],
    "mahimahi-value at word 4 (mm-intermittent)": ["mm-intermittent uplink 1 0"],
    "mahimahi-syntax at (mm-link --uplink-log)": ["mm-link a b --uplink-log="],
    "mahimahi-syntax at word 5 (mm-link)": ["mm-link a b iperf3 -c host"],
    "mahimahi-unknown-word at word 2 (mm-meter)": ["mm-meter --meter-all"],
}


@pytest.mark.parametrize(("paths", "what"), PATHS)
def test_paths(tmp_path: Path, paths: str, what: str) -> None:
    refuses(tmp_path, f"paths: {paths}\n", what)


@pytest.mark.parametrize(("text", "what"), LINES)
def test_places_within_a_model_have_their_line(tmp_path: Path, text: str, what: str) -> None:
    refuses(tmp_path, text, what)


@pytest.mark.parametrize(("old", "new", "what"), [(old, *row) for old, rows in AGENTS.items() for row in rows])
def test_agents(tmp_path: Path, old: str, new: str, what: str) -> None:
    assert old in AGENT
    refuses(tmp_path, AGENT.replace(old, new), what)


@pytest.mark.parametrize(("what", "arguments"), ARGUMENTS)
def test_arguments_of_a_path(what: str, arguments: dict[str, Any]) -> None:
    with refused(CcgymError, what):
        NetworkPath(**arguments)


@pytest.mark.parametrize(("what", "command"), [(what, one) for what, commands in MAHIMAHI.items() for one in commands])
def test_paths_of_mahimahi(what: str, command: str) -> None:
    with refused(ConfigError, what):
        NetworkPath.from_mahimahi(command)


@pytest.mark.parametrize(
    ("what", "command"),
    [(what, one) for what, commands in WITH_A_COMMAND.items() for one in commands]
    + [("too-large at word 201 (mm-delay)", "mm-delay 1 " * 101)],
)
def test_command_lines_of_mahimahi(what: str, command: str) -> None:
    with refused(ConfigError, what):
        parse_command_line(command.split())
