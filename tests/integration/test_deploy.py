"""From a training run to a scheme: export, parity with torch, and evaluation, for both kinds of network."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import ccgym
from ccgym.cli.main import main as cli
from ccgym.envs.settings import Settings
from ccgym.errors import ConfigError, ResultsError
from ccgym.schemes import policies
from ccgym.schemes.reading import parse_scheme
from ccgym.training.config import TrainConfig
from ccgym.training.environments import Environments, normalized
from ccgym.training.export import export_policy
from ccgym.training.model import build_model, load_model, write_model
from ccgym.training.parity import ParityError, check_parity, trajectory_parity
from ccgym.training.run_directory import RunDirectory
from ccgym.training.torch_policy import Exportable, TorchPolicy, exportable
from tests.commands import evaluate
from tests.integration.tiny_agent import DISCRETE, TINY
from tests.refusals import explained, refused

CONFIG = (
    TINY
    + """\
algorithm: {n_envs: 2, n_steps: 32, batch_size: 32, net_arch: [8], normalize: {observation: true}}
training: {steps: 64, eval_every: 64, checkpoint_every: 64}
evaluation: {episodes: 2, baselines: []}
"""
)

VARIANTS = {
    "mlp": [],
    "lstm": ["algorithm.name=recurrent_ppo", "algorithm.lstm={hidden_size: 8, layers: 2}"],
    "discrete": [DISCRETE],
}


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Path]:
    """A function that makes a run directory with a model of random weights, without training."""

    def make(variant: str = "mlp", seed: int = 1) -> Path:
        file = tmp_path / f"{variant}.yaml"
        file.write_text(CONFIG, encoding="utf-8")
        config = TrainConfig.load(file, [*VARIANTS[variant], f"training.seed={seed}"])
        directory = tmp_path / f"run-{variant}-{seed}"
        env = Environments(config).training()
        env = normalized(env, config.algorithm)
        model = build_model(config.algorithm, env, seed, "cpu")
        env.seed(seed)
        env.reset()
        for _ in range(20):  # so that the statistics are those of something
            env.step(np.array([env.action_space.sample() for _ in range(2)]))
        with torch.no_grad():
            model.policy.action_net.weight.mul_(300.0)
        with RunDirectory(directory) as run:
            run.claim(config.as_yaml(), {"root": seed}, ["train.py"])
            write_model(run.best, model, model.get_vec_normalize_env(), {"step": 64, "mean_reward": 1.0})
            (directory / "evaluations.csv").write_text(
                "step,eval/mean_reward,eval/fraction_of_oracle\n64,1.0,0.5\n", encoding="utf-8"
            )
        env.close()
        return directory

    return make


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_run_becomes_a_scheme(
    variant: str, made: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_dir = made(variant)
    with refused(ConfigError, "policy-missing at -1"):
        parse_scheme(str(run_dir))
    assert cli(["train", "export", str(run_dir)]) == 0
    assert "as torch in float64, bit for bit; 5 trajectories with the same hash" in capsys.readouterr().out

    card = policies.read_card(run_dir / "export" / "tiny.onnx")
    assert card.policy.kind == ("lstm" if variant == "lstm" else "mlp")
    assert card.parity["episodes"] == 5
    assert card.parity["decisions"] == 300
    assert card.parity["max_abs_difference"] <= card.parity["tolerance"] == 1e-5
    assert len(set(card.parity["trajectories"])) == 5
    assert card.training["steps"] == 64
    assert card.training["curve"] == [[64, 1.0, 0.5]]
    assert card.training["config"]["name"] == "tiny"
    assert {"torch", "onnx", "ccgym"} <= card.versions.keys()
    assert "cores" in card.training["machine"]

    path = ccgym.NetworkPath(rate="8mbps", rtt="20ms", queue="30p")
    run = ccgym.simulate(path, flows=[str(run_dir)] * 3, duration="2s")
    assert [flow.scheme for flow in run.flows] == ["tiny"] * 3

    words = ["--trace", "12mbps", "--runs", "1", "--runtime", "2", "--no-figures", "--logs", "none", "--json"]
    assert evaluate([*words, "--schemes", f"{run_dir},cubic", "--out", str(tmp_path / "out")]) == 0
    results = json.loads(capsys.readouterr().out)
    assert [row["label"] for row in results["summary"]] == [f"Tiny ({run_dir.name})", "TCP Cubic"]


def policy_of(run_dir: Path) -> Exportable:
    trained = load_model(run_dir)
    return exportable(trained.model.policy, trained.statistics)


@pytest.mark.parametrize("variant", VARIANTS)
def test_torch_and_the_exported_policy_send_the_same_packets(variant: str, made: Callable[..., Path]) -> None:
    run_dir = made(variant)
    export_policy(run_dir)
    exported = parse_scheme(str(run_dir)).policy
    assert exported is not None
    config = TrainConfig.load(run_dir / "config.yaml")
    settings = Settings.of(config.environment, config.agent)
    policy = policy_of(run_dir)
    pairs = [trajectory_parity(policy, exported, settings, [7, index], 3 * 10**9) for index in range(4)]
    assert all(pair.outside == pair.inside for pair in pairs)
    assert len({pair.inside for pair in pairs}) == 4
    # The comparison can tell: other weights send other packets.
    other = policy_of(made(variant, seed=2))
    assert trajectory_parity(other, exported, settings, [7, 0], 3 * 10**9).outside != pairs[0].inside


def test_equal_runs_give_equal_files(made: Callable[..., Path], tmp_path: Path) -> None:
    run_dir = made()
    first, second = export_policy(run_dir, tmp_path / "a"), export_policy(run_dir, tmp_path / "b" / "tiny.onnx")
    assert first.onnx.read_bytes() == second.onnx.read_bytes()
    assert first.card_file.read_bytes() == second.card_file.read_bytes()
    assert sorted(file.name for file in (tmp_path / "a").iterdir()) == ["tiny.json", "tiny.onnx"]


def test_an_export_that_would_do_something_else_is_refused(
    made: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_dir, other = made(), policy_of(made(seed=2))
    written = other.onnx("tiny")
    monkeypatch.setattr(TorchPolicy, "onnx", lambda policy, name: written)
    with refused(ParityError, "policy-differs at run-mlp-1"):
        export_policy(run_dir)
    assert not (run_dir / "export").exists()


def test_a_small_difference_is_found_out(made: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the tolerance of float32, but not what torch computes in float64."""
    run_dir = made()
    changed: Any = policy_of(run_dir)
    with torch.no_grad():
        changed.layers[-1].bias.add_(3e-7)
    written = changed.onnx("tiny")
    monkeypatch.setattr(TorchPolicy, "onnx", lambda policy, name: written)
    with refused(ParityError, "policy-differs at run-mlp-1"):
        export_policy(run_dir)


def test_parity_counts(made: Callable[..., Path]) -> None:
    run_dir = made("lstm")
    export_policy(run_dir, episodes=1)
    exported = parse_scheme(str(run_dir)).policy
    assert exported is not None
    config = TrainConfig.load(run_dir / "config.yaml")
    settings = Settings.of(config.environment, config.agent)
    parity = check_parity(policy_of(run_dir), exported, settings, seed=3, episodes=2)
    assert (parity.episodes, parity.decisions, parity.inexact, len(parity.trajectories)) == (2, 120, 0, 2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--model", "last"], "unknown-choice"),
        (["--model", "final"], "results-unfinished at run-mlp-1/final"),
        (["--name", "Big Name"], "name-taken"),
        (["--name", "cubic"], "name-taken"),
        (["--episodes", "0"], "out-of-range at episodes"),
    ],
)
def test_wrong_exports(
    arguments: list[str], words: str, made: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli(["train", "export", str(made()), *arguments]) == 2
    explained(capsys.readouterr().err, words)


def test_what_is_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli(["train", "export", str(tmp_path)]) == 2
    explained(capsys.readouterr().err, "run-missing")


def test_a_damaged_model_is_refused(made: Callable[..., Path]) -> None:
    run_dir = made()
    (run_dir / "best" / "model.zip").write_bytes(b"PK")
    with refused(ResultsError, "results-damaged at run-mlp-1/best/model.zip"):
        export_policy(run_dir)
