"""The configuration of a training run, the learner that it means, what is shown, and the picture of an episode."""

from __future__ import annotations

import io
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from pydantic import TypeAdapter
from rich.console import Console
from stable_baselines3.common.vec_env import DummyVecEnv

from ccgym.config.configurations import find_config
from ccgym.errors import CcgymError, ConfigError
from ccgym.training.algorithms.config import AlgorithmField, AnyAlgorithm, Cosine, Linear
from ccgym.training.algorithms.supervised import schedule
from ccgym.training.config import PolicyStyle, TrainConfig
from ccgym.training.environments import Environments, passive_agent
from ccgym.training.evaluation import Baselines, EvaluationResult, evaluate, evaluation_seed
from ccgym.training.export import policy_style
from ccgym.training.model import build_model, choose_device
from ccgym.training.progress import ProgressDisplay, digits
from tests.refusals import refused

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = sorted((ROOT / "configs").glob("*.yaml"))

# --- Files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_shipped_configurations_are_read_and_written_back(file: Path, tmp_path: Path) -> None:
    config = TrainConfig.load(file)
    again = tmp_path / "config.yaml"
    again.write_text(config.as_yaml())
    back = TrainConfig.load(again)
    assert back.model_dump(mode="json") == config.model_dump(mode="json")
    assert back.agent.native() == config.agent.native()
    assert back.as_yaml() == config.as_yaml()


@pytest.mark.parametrize("name", ["aurora", "aurora.yaml", "configs/aurora.yaml", "configs/aurora"])
def test_a_configuration_is_found_by_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_config(name) == ROOT / "configs" / "aurora.yaml"
    (tmp_path / "configs").mkdir()
    shutil.copy(ROOT / "configs" / "aurora.yaml", tmp_path / "configs" / "aurora.yaml")
    assert find_config(name).resolve() == tmp_path / "configs" / "aurora.yaml"


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("algorithm.lerning_rate=1", "unknown-key at algorithm.lerning_rate"),
        ("algorithm.gama=0.9", "unknown-key at algorithm.gama"),
        ("gamma=0.9", "unknown-key at gamma"),
        ("gamma", "text-malformed at --set"),
        ("path.rtt=40ms", "unknown-key at path"),
        ("algorithm.name=dqn", "unknown-kind at algorithm"),
        ("algorithm.batch_size=5000", "not-divisible at algorithm"),
        ("training.steps=0", "out-of-range at training.steps"),
        ("training.time_limit=-10", "out-of-range at training.time_limit"),
        ("training.seed=-1", "out-of-range at training.seed"),
        ("evaluation.episodes=none", "wrong-type at evaluation.episodes"),
        ("name=../x", "text-malformed at name"),
    ],
)
def test_mistakes_name_their_place(override: str, expected: str) -> None:
    with refused(ConfigError, expected):
        TrainConfig.load("aurora", [override])


def test_overrides() -> None:
    config = TrainConfig.load(
        "aurora",
        ["algorithm.learning_rate={linear: [1e-3, 1e-4]}", "training.time_limit=10min", "algorithm.net_arch=[5, 4]"],
    )
    assert config.algorithm.learning_rate == Linear(linear=(1e-3, 1e-4))
    assert config.training.time_limit == 600 * 10**9
    assert config.algorithm.net_arch.pi == config.algorithm.net_arch.vf == (5, 4)
    assert "learning_rate:" in config.as_yaml()
    assert "clip_range: 0.2" in config.as_yaml()  # a default, spelled out


# --- The learner -----------------------------------------------------------------------------------------------------


class _Still:
    """An environment with spaces and nothing else."""

    metadata: dict[str, Any] = {}  # noqa: RUF012
    render_mode = None
    observation_space = spaces.Box(-1, 1, (3,), np.float32)
    action_space = spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return np.zeros(3, np.float32), {}


def read_algorithm(content: dict[str, Any]) -> AnyAlgorithm:
    read: AnyAlgorithm = TypeAdapter(AlgorithmField).validate_python(content)
    return read


def still(count: int = 2) -> DummyVecEnv:
    import gymnasium

    made: Any = type("Still", (_Still, gymnasium.Env), {})
    return DummyVecEnv([made for _ in range(count)])


SMALL = {"n_envs": 2, "n_steps": 8, "batch_size": 8, "net_arch": {"pi": [7, 5], "vf": [4]}}


@pytest.mark.parametrize("name", ["ppo", "recurrent_ppo"])
def test_hyper_parameters_arrive(name: str) -> None:
    algorithm = read_algorithm(
        {
            **SMALL, "name": name, "gamma": 0.9, "learning_rate": {"linear": [1, 0]}, "activation": "relu",
            "log_std_init": -1.0, "adam_epsilon": 1e-4, "ent_coef": 0.03, "normalize_advantage": False,
            "lstm": {"hidden_size": 6, "layers": 2, "critic": "none"},
        }
    )  # fmt: skip
    model: Any = build_model(algorithm, still(), 1, "cpu")
    assert (model.gamma, model.ent_coef, model.normalize_advantage) == (0.9, 0.03, False)
    assert model.lr_schedule(0.25) == 0.25
    assert [layer.out_features for layer in model.policy.mlp_extractor.policy_net[::2]] == [7, 5]
    assert [layer.out_features for layer in model.policy.mlp_extractor.value_net[::2]] == [4]
    assert isinstance(model.policy.mlp_extractor.policy_net[1], torch.nn.ReLU)
    assert model.policy.log_std.item() == -1.0
    assert model.policy.optimizer.defaults["eps"] == 1e-4
    if name == "recurrent_ppo":
        lstm = model.policy.lstm_actor
        assert (lstm.hidden_size, lstm.num_layers, model.policy.lstm_critic) == (6, 2, None)


def test_schedules() -> None:
    assert schedule(0.3) == 0.3
    linear: Any = schedule(Linear(linear=(4.0, 2.0)))
    cosine: Any = schedule(Cosine(cosine=(4.0, 2.0)))
    for value in (linear, cosine):
        assert [round(value(remaining), 6) for remaining in (1.0, 0.5, 0.0)] == [4.0, 3.0, 2.0]
    assert 4.0 - cosine(0.9) < 0.1 * 2.0, "slowly at both ends"


def test_devices() -> None:
    algorithm = read_algorithm(SMALL)
    assert choose_device("auto", algorithm) == "cpu"
    assert choose_device("cpu", algorithm) == "cpu"
    with refused(ConfigError, "unknown-device at --device"):
        choose_device("quantum", algorithm)


# --- Environments and baselines --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def aurora() -> TrainConfig:
    return TrainConfig.load("aurora", ["environment.episode.steps=30", "evaluation.episodes=3"])


def rewards_of(config: TrainConfig, scheme: str) -> EvaluationResult:
    env = Environments(config).baseline(scheme)
    idle = np.zeros((env.num_envs, *(env.action_space.shape or ())), dtype=env.action_space.dtype)
    return evaluate(env, lambda observations, starts: idle, evaluation_seed(config))


def test_baselines_run_on_the_agents_clock_and_reward(aurora: TrainConfig) -> None:
    oracle, cubic = rewards_of(aurora, "oracle"), rewards_of(aurora, "cubic")
    assert (oracle.rewards > cubic.rewards).all()
    assert (oracle.lengths == 30).all()
    assert sum(oracle.terms.values()) == pytest.approx(oracle.mean_reward)
    assert set(oracle.terms) == {"throughput", "latency", "loss"}
    assert 0.9 < oracle.metrics["utilization"] <= 1.001
    assert np.array_equal(rewards_of(aurora, "oracle").rewards, oracle.rewards)


def test_baselines_meet_the_same_paths(aurora: TrainConfig) -> None:
    def paths(env: Any) -> list[Any]:
        env.seed(evaluation_seed(aurora))
        env.reset()
        found = [None] * env.num_envs
        while None in found:
            _, _, dones, infos = env.step(np.zeros((env.num_envs, *env.action_space.shape), env.action_space.dtype))
            for index in np.flatnonzero(dones):
                found[index] = found[index] or infos[index]["path"]
        return found

    made = Environments(aurora)
    held_out = paths(made.evaluation())
    assert paths(made.baseline("bbr")) == held_out
    assert paths(made.drawn()) == held_out[:1]
    assert len({path["rate_mbps"] for path in held_out}) == len(held_out)


def test_an_unknown_baseline_is_explained(aurora: TrainConfig) -> None:
    with refused(CcgymError, "unknown-scheme at evaluation.baselines: cubik"):
        passive_agent(aurora.agent, "cubik")


def test_the_share_of_the_oracles_reward() -> None:
    assert Baselines({"oracle": 200.0}).fraction_of_oracle(150.0) == 0.75
    assert Baselines({"oracle": -5.0}).fraction_of_oracle(1.0) is None
    assert Baselines({"bbr": 1.0}).fraction_of_oracle(1.0) is None
    assert Baselines({"oracle": 200.0, "bbr": 180.0}).oracle_bounds
    assert not Baselines({"oracle": 283.2, "bbr": 807.4}).oracle_bounds
    assert not Baselines({"bbr": 1.0}).oracle_bounds
    whole = Baselines({"oracle": 2.0}, {"oracle": {"loss": 0.1}})
    assert Baselines(**asdict(whole)) == whole


# --- What is shown ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("terminal", [True, False])
def test_progress(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")  # a dumb terminal shows no bars
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=120, highlight=False)
    result = EvaluationResult(
        np.array([80.0, 100.0]), np.array([5, 5]), {"throughput_mbps": 3.25, "delay_p95_ms": 41.0}, {}
    )
    with ProgressDisplay(console, 1000) as display:
        display.baselines(Baselines({"oracle": 100.0, "cubic": 20.0}))
        display.update(100, None, 12_345.0)
        display.evaluation(500, result, best=True)
        display.update(1_500_000, 70.0, 12_345.0)
        display.notice("something happened")
    text = out.getvalue()
    assert "oracle 100.0, cubic 20.0" in text
    assert "note: something happened" in text
    assert "90.0 % of oracle" in text
    assert "3.25 Mbit/s" in text
    if terminal:
        assert "12.3k/s" in text
        assert "1.5M steps" in text
    else:
        assert len(text.splitlines()) == 3


def test_a_policy_is_called_by_its_own_name(tmp_path: Path) -> None:
    aurora = TrainConfig.load("aurora")
    assert policy_style(aurora, "aurora").label == "Aurora"
    assert policy_style(aurora, "other") == PolicyStyle()
    text = Path("configs/aurora.yaml").read_text(encoding="utf-8")
    copy = tmp_path / "mine.yaml"
    copy.write_text(text.replace("name: aurora\n", "name: mine\n"), encoding="utf-8")
    copied = TrainConfig.load(copy)
    assert copied.style.label == "Aurora"
    assert policy_style(copied, "mine") == PolicyStyle()
    copy.write_text("extends: aurora.yaml\nname: mine\nstyle: {label: Mine}\n", encoding="utf-8")
    extended = TrainConfig.load(copy)
    assert policy_style(extended, "mine").label == "Mine"
    assert policy_style(extended, "mine").reference == ""
    assert extended.inherited
    assert not aurora.inherited


@pytest.mark.parametrize(
    ("reward", "text"), [(807.42, "807.4"), (-2.9, "-2.900"), (0.01234, "0.01234"), (0.0, "0.000")]
)
def test_rewards_have_digits_that_show_progress(reward: float, text: str) -> None:
    assert digits(reward) == text


@pytest.mark.parametrize("best", [100.0, 807.4])
def test_fractions_of_an_oracle_that_others_exceed_are_not_shown(best: float) -> None:
    console = Console(record=True, width=200, file=io.StringIO())
    display = ProgressDisplay(console, 100)
    display.baselines(Baselines({"oracle": 283.2, "bbr": best}))
    result = EvaluationResult(np.array([250.0]), np.array([10]), {}, {})
    display.evaluation(10, result, best=True)
    assert ("88.3 %" in console.export_text()) == (best < 283)
