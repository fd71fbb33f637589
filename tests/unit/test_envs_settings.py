"""What environments are made of: arguments, files, flows, errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

import ccgym
from ccgym.config.configurations import PACKAGED
from ccgym.config.sampled_path import DEFAULT_DURATION_NS, SampledPath
from ccgym.config.yaml_loader import load_model
from ccgym.envs.config import EnvironmentConfig
from ccgym.envs.episode import HORIZON, draw_episode
from ccgym.envs.settings import Settings, _File
from ccgym.errors import CcgymError, ConfigError
from ccgym.schemes.flow import FlowSpec, LearnerFlow, flow_spec, read_flows
from tests.refusals import refused

PATH = {"rate": "12mbps", "rtt": "40ms", "queue": "40p"}


def read(**arguments: Any) -> Settings:
    return Settings.read(**arguments)


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


# --- Arguments -----------------------------------------------------------------------------------------------------


def test_a_limit_replaces_the_configuration_s() -> None:
    link, aurora = read(), read(config="aurora")
    assert (link.agent.name, aurora.agent.name) == ("link", "aurora")
    assert (link.steps, aurora.steps, link.duration_ns) == (400, 400, None)
    timed = read(duration="30s")
    assert (timed.steps, timed.duration_ns) == (None, 30_000_000_000)
    assert read(duration=30).duration_ns == read(duration=30.0).duration_ns == 30_000_000_000
    both = read(duration="30s", episode_steps=10)
    assert (both.steps, both.duration_ns) == (10, 30_000_000_000)


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        ({"backend": "simm"}, "unknown-backend at backend"),
        ({"backend": "mahi-mahi"}, "unknown-backend at backend"),
        ({"flows": ["tcp:cubic"]}, "scheme-unsuitable at flows[0]"),
        ({"backend": "emulated", "flows": ["tcp:no-such"]}, "scheme-unavailable at flows[0]"),
        ({"path": PATH, "paths": "aurora"}, "options-conflict at paths"),
        ({"path": "no-such-path"}, "unknown-path at path"),
        ({"paths": "auroro"}, "unknown-path at paths"),
        ({"paths": {"kind": "rangs"}}, "unknown-kind at paths: kind"),
        ({"agent": 5}, "wrong-type at agent"),
        ({"agent": {"clock": "10ms"}}, "key-missing at agent"),
        ({"agent": "auroraa"}, "unknown-configuration at config"),
        ({"config": "lnk"}, "unknown-configuration at config"),
        ({"config": "nowhere.yaml"}, "unknown-configuration at config"),
        ({"episode_steps": 0}, "out-of-range at episode_steps"),
        ({"episode_steps": 2.5}, "wrong-type at episode_steps"),
        ({"duration": "-1s"}, "out-of-range at duration"),
        ({"duration": 0}, "out-of-range at duration"),
        ({"duration": True}, "quantity-malformed at duration"),
        ({"flows": "cubic"}, "wrong-type at flows"),
        ({"flows": [5]}, "wrong-type at flows[0]"),
        ({"flows": ["cubic", "cubbic"]}, "unknown-scheme at flows[1]"),
        ({"flows": ["learned"]}, "policy-missing at flows[0]"),
        ({"flows": [{"scheme": "cubic", "strat": "5s"}]}, "unknown-key at flows[0]: strat"),
        ({"flows": ["fixed_window:cwnd"]}, "text-malformed at flows[0]"),
        ({"flows": [{"scheme": "cubic", "start": "5s", "stop": "4s"}]}, "wrong-type at flows[0]"),
        ({"learner": {"start": {"uniform": ["0s", "5s"]}, "stop": "4s"}}, "wrong-type at learner"),
        ({"learner": {"start": {"unifrom": ["0s", "5s"]}}}, "unknown-key at learner: start: unifrom"),
        (
            {"flows": [{"scheme": "cubic", "start": {"uniform": ["5s", "1s"]}}]},
            "order-wrong at flows[0]: start: uniform",
        ),
        ({"flows": [{"scheme": "cubic", "source": "10p"}]}, "unit-mismatch at flows[0]: source.bytes.bytes"),
        ({"learner": {"profil": "udp"}}, "unknown-key at learner: profil"),
        ({"learner": "udp"}, "wrong-type at learner"),
        ({"pathz": 1}, "unknown-argument"),
        ({"set": {"action.map.delta": 1}}, "unknown-key at set"),
        ({"set": {"agent.action.map.bsae": 2}}, "unknown-key at set['agent.action.map.bsae']: agent.action.map.bsae"),
        (
            {"set": {"environment.episode.steps": 0}},
            "out-of-range at set['environment.episode.steps']: environment.episode.steps",
        ),
        ({"set": {"algorithm.gamma": 0.9}}, "unknown-key at set"),
        ({"set": {"agent": {}}}, "unknown-key at set"),
        ({"set": ["agent.clock=10ms"]}, "wrong-type at set"),
        ({"set": {"agent.clock.multiple": 2}, "agent": "genet"}, "options-conflict at set"),
        ({"set": {"environment.path.rate": "5mbps"}, "path": PATH}, "options-conflict at set"),
        ({"paths": {"kind": "traces", "que": 1}}, "key-missing at paths"),
    ],
)
def test_mistakes_are_named(arguments: dict[str, Any], fragments: list[str]) -> None:
    with refused(CcgymError, fragments):
        read(**arguments)


def test_set_changes_single_keys_of_the_configuration() -> None:
    changed = read(config="aurora", set={"agent.action.map.delta": 0.05, "environment.episode.steps": 7})
    assert changed.steps == 7
    assert changed.agent.native()["action"]["map"]["delta"] == 0.05
    same = read(config="aurora", set={"agent.action.map.delta": 0.025}).agent.native()
    assert same == read(config="aurora").agent.native()
    one = read(config="aurora", set={"environment.paths": None, "environment.path": PATH}, episode_steps=3)
    assert one.source == read(path=PATH).source
    assert one.steps == 3


def test_set_is_what_the_command_line_s_set_is() -> None:
    loaded = load_model(PACKAGED / "aurora.yaml", _File, ["agent.action.map.delta=0.05", "agent.observation.history=5"])
    changed = read(config="aurora", set={"agent.action.map.delta": 0.05, "agent.observation.history": 5})
    assert changed.agent == loaded.agent


def test_paths_are_understood_in_every_form() -> None:
    path = ccgym.NetworkPath.from_any(PATH)
    for given in ("aurora", "77.72mbps", path, ["77.72mbps", "114.68mbps"], {"kind": "fixed", "path": PATH}):
        drawn = read(paths=given).source.sample(rng())
        assert drawn.numbers["rate_mbps"] > 0
    assert read(path=PATH).source == read(paths=path).source


@pytest.mark.parametrize("form", ["path", "mapping", "sampled", "number"])
def test_a_source_of_your_own_returns_any_path(form: str) -> None:
    class Mine:
        def sample(self, rng: np.random.Generator, duration_ns: int) -> Any:
            path = {**PATH, "rate": f"{rng.integers(1, 20)}mbps"}
            if form in ("mapping", "number"):
                return path if form == "mapping" else 12
            made = ccgym.NetworkPath.from_any(path)
            return made if form == "path" else SampledPath.of(made, duration_ns)

    settings = read(paths=Mine())
    if form == "number":
        with refused(ConfigError, "wrong-type at Mine.sample(): path"):
            draw_episode(settings.source, rng(), settings.learners)
        return
    drawn = draw_episode(settings.source, rng(), settings.learners)
    rate = int(rng().integers(1, 20))
    fixed = read(path={**PATH, "rate": f"{rate}mbps"}).source.sample(rng())
    assert json.loads(drawn.spec)["facts"] == fixed.facts == {"base_rtt": 40_000_000, "capacity": [[0, rate * 10**6]]}
    assert drawn.path == fixed.describe()
    assert drawn.path["rate_mbps"] == rate


def test_a_curriculum_goes_through_its_stages() -> None:
    def one(rate: str) -> dict[str, Any]:
        return {"kind": "fixed", "path": {**PATH, "rate": rate}}

    stages = [{"until": 0.5, "paths": one("1mbps")}, {"until": 1.0, "paths": one("2mbps")}]
    settings = read(paths={"kind": "stages", "stages": stages})
    rates = [settings.at(at).source.sample(rng()).numbers["rate_mbps"] for at in (0.0, 0.4, 0.6, 1.0)]
    assert rates == [1.0, 1.0, 2.0, 2.0]
    assert read(path=PATH).at(0.7).source == read(path=PATH).source


# --- Files ---------------------------------------------------------------------------------------------------------


def test_a_file_of_your_own(tmp_path: Path) -> None:
    text = (PACKAGED / "link.yaml").read_text(encoding="utf-8").split("environment:")[0]
    file = tmp_path / "mine.yaml"
    file.write_text(
        f"{text}environment:\n  paths: aurora\n  episode: {{steps: 5, duration: 20s}}\n"
        "  flows: [cubic, {scheme: bbr, start: 5s}]\n  learner: {start: 1s}\n  privileged: true\n",
        encoding="utf-8",
    )
    settings = read(config=file)
    assert (settings.steps, settings.duration_ns, settings.privileged) == (5, 20_000_000_000, True)
    assert [flow.scheme for flow in settings.background] == ["cubic", "bbr"]
    assert settings.learners[0].latest_start_ns == 1_000_000_000
    file.write_text(f"{text}environment:\n  pathz: aurora\n", encoding="utf-8")
    with refused(ConfigError, "unknown-key at mine.yaml:28: environment.pathz"):
        read(config=file)


def test_a_section_needs_paths_and_an_end() -> None:
    for section, message in (
        ({}, "exactly-one"),
        ({"path": PATH, "paths": "aurora"}, "exactly-one"),
        ({"path": PATH, "episode": {}}, "key-missing"),
        ({"path": PATH, "backend": "emulate"}, "unknown-backend at backend"),
    ):
        with refused(ValidationError, message):
            EnvironmentConfig.model_validate(section)


def test_a_section_is_written_back() -> None:
    section = {"paths": "aurora", "flows": ["fixed_window:cwnd=20"], "episode": {"duration": "30s"}}
    config = EnvironmentConfig.model_validate(section)
    written = config.model_dump(mode="json", exclude_unset=True)
    assert EnvironmentConfig.model_validate(written) == config


# --- Flows and episodes --------------------------------------------------------------------------------------------


def test_read_flows_are_read() -> None:
    flows = read_flows(["fixed_window:cwnd=20", {"scheme": "reno", "start": "5s", "source": "5MB"}])
    native = [flow.native(40_000_000) for flow in flows]
    assert native[0]["params"] == {"cwnd": 20}
    assert native[1]["start"] == 5_000_000_000
    assert native[1]["source"] == {"kind": "bytes", "bytes": 5_000_000}
    assert read_flows(None) == ()
    assert read_flows(flows) == flows


def test_every_episode_draws_its_own_starts() -> None:
    settings = Settings.read(
        path="12mbps",
        learner={"start": {"uniform": ["0s", "1s"]}},
        flows=[{"scheme": "cubic", "start": {"choice": ["2s", "3s"]}}],
    )

    def starts(generator: np.random.Generator) -> tuple[int, int]:
        spec = json.loads(draw_episode(settings.source, generator, settings.learners, settings.background).spec)
        return spec["flows"][0]["start"], spec["flows"][1]["start"]

    generator = rng()
    drawn = [starts(generator) for _ in range(50)]
    assert starts(rng()) == drawn[0], "the same seed, the same episode"
    learner, background = zip(*drawn)
    assert len(set(learner)) == 50
    assert 0 <= min(learner) < 2 * 10**8 < 8 * 10**8 < max(learner) <= 10**9
    assert set(background) == {2 * 10**9, 3 * 10**9}


def test_every_episode_draws_which_flows_take_part() -> None:
    settings = Settings.read("link", path=PATH, flows=[{"scheme": "cubic", "probability": 0.25}, "reno"])
    rng = np.random.default_rng(1)
    counts = []
    for _ in range(400):
        episode = draw_episode(settings.source, rng, settings.learners, settings.background, 10**9)
        schemes = [flow["scheme"] for flow in json.loads(episode.spec)["flows"]]
        assert schemes in (["learned", "cubic", "reno"], ["learned", "reno"])
        counts.append(len(schemes))
    assert 70 < counts.count(3) < 130


def test_only_episodes_draw() -> None:
    with refused(ConfigError, "out-of-range at flow"):
        flow_spec({"scheme": "cubic", "probability": 0.5})
    with refused(ConfigError, "wrong-type at flows[0]: start"):
        ccgym.simulate("12mbps", [{"scheme": "cubic", "start": {"uniform": ["0s", "1s"]}}], 5, seed=1)


def test_a_flow_s_own_round_trip() -> None:
    flow = FlowSpec.model_validate({"scheme": "cubic", "rtt": "60ms"})
    assert flow.native(40_000_000)["extra_rtt"] == 20_000_000
    with refused(ConfigError, "out-of-range"):
        flow.native(80_000_000)
    with pytest.raises(ValueError, match="both given"):
        LearnerFlow.model_validate({"rtt": "60ms", "extra_rtt": "1ms"})


def test_the_drawn_start_rate_goes_first() -> None:
    flow = LearnerFlow.model_validate({"start_rate": "2mbps", "start_window": 5})
    assert flow.native(0)["params"] == {"start_rate_mbps": 2.0, "start_cwnd": 5}
    assert flow.native(0, start_rate_mbps=3.5)["params"]["start_rate_mbps"] == 3.5


def test_an_episode_without_time_limit_ends_where_the_capacity_is_known() -> None:
    import json

    def duration(**arguments: Any) -> int:
        settings = read(**arguments)
        drawn = draw_episode(settings.source, rng(), settings.learners, (), settings.duration_ns)
        length: int = json.loads(drawn.spec)["duration"]
        return length

    assert duration(path=PATH) == HORIZON
    assert duration(path={**PATH, "rate": [["0s", "1mbps"], ["5s", "2mbps"]]}) == DEFAULT_DURATION_NS
    assert duration(path=PATH, duration="7s") == 7_000_000_000
