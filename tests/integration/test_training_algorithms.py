"""Whole trainings by the algorithms other than PPO: killed and resumed, and the agents in short."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ccgym.training import TrainConfig, export_policy, train
from ccgym.training.environments import Environments
from ccgym.training.training_env import TrainingEnv
from tests.trainings import Killed, Quiet, run, tables

# --- Killed and resumed ----------------------------------------------------------------------------------------------

RUNS: dict[str, tuple[str, list[str]]] = {
    "a2c": (
        "link",
        [
            "agent.action={map: [/2, -10, +0, +10, '*2'], target: cwnd}",
            "agent.startup=10p",
            "environment.episode={steps: 23}",
            "algorithm={name: a2c, n_envs: 4, n_steps: 8, normalize: {observation: true, reward: true}}",
            "training={steps: 512, eval_every: 128, checkpoint_every: 128}",
        ],
    ),
    # Episodes end in the middle of rounds, are perturbed, and the buffer has no room for all of them.
    "dagger": (
        "link",
        [
            "agent.action={map: [/2, -10, +0, +10, '*2'], target: cwnd}",
            "agent.startup=10p",
            "agent.expert=best_window",
            "environment.episode={steps: 23}",
            "algorithm={name: dagger, n_envs: 4, n_steps: 32, lstm: {hidden_size: 6, critic: none}, n_epochs: 2,"
            " batch_size: 3, sequence_length: 10, buffer_size: 300, perturbation: {every: 20}, beta: 0.5,"
            " learning_rate: {cosine: [0.01, 0.001]}}",
            "training={steps: 1024, eval_every: 256, checkpoint_every: 256}",
        ],
    ),
    # Of real numbers, and without memory.
    "dagger-mlp": (
        "link",
        [
            "agent.expert=gain_schedule",
            "environment.episode={steps: 30}",
            "algorithm={name: dagger, n_envs: 4, n_steps: 32, net_arch: [8], n_epochs: 2, perturbation: {every: 20}}",
            "training={steps: 768, eval_every: 256, checkpoint_every: 256}",
        ],
    ),
    # With soft labels, and a flow that takes part in some episodes.
    "dagger-soft": (
        "link",
        [
            "agent.action={map: [/2, /1.05, +0, '*1.05', '*2'], target: cwnd}",
            "agent.startup=10p",
            "agent.expert=fluid_bdp",
            "environment.flows=[{scheme: cubic, probability: 0.5}]",
            "environment.episode={steps: 23}",
            "algorithm={name: dagger, n_envs: 4, n_steps: 32, net_arch: [8], n_epochs: 2, soft: {weight: 0.1}}",
            "training={steps: 768, eval_every: 256, checkpoint_every: 256}",
        ],
    ),
    # A tree, taught by a policy.
    "distill": (
        "link",
        [
            "agent.action={map: [/1.5, +0, '*1.5'], target: cwnd, smoothing: [{min_rtt: 40ms, keep: 0.25}]}",
            "agent.startup=10p",
            "agent.expert={kind: policy, policy: indigo}",
            "environment.episode={steps: 23}",
            "algorithm={name: distill, n_envs: 4, n_steps: 32, min_leaf: 4, min_split: 8, buffer_size: 300,"
            " perturbation: {every: 20}, beta: 0.5}",
            "training={steps: 768, eval_every: 256, checkpoint_every: 256}",
        ],
    ),
    # Six updates, in four of which the expert is imitated.
    "cross_entropy": (
        "eagle",
        [
            "environment.paths={kind: named, names: [indigo-5mbps-20ms, indigo-10mbps-20ms, indigo-20mbps-10ms]}",
            "environment.episode.steps=20",
            "algorithm.n_steps=20",
            "algorithm.n_envs=16",
            "algorithm.group_size=4",
            "algorithm.elite_updates=2",
            "algorithm.n_epochs=2",
            "algorithm.imitation={weight: 1, decay: 0.1, every: 2, min_weight: 0.05}",
            "training={steps: 1920, eval_every: 640, checkpoint_every: 640}",
        ],
    ),
}
MEASURED = "evaluation={episodes: 2, baselines: [oracle], figure: false}"


class Mortal(Environments):
    """Environments that end the process at a step."""

    def __init__(self, config: TrainConfig, at: int) -> None:
        super().__init__(config)
        self._left = at

    def training(self) -> TrainingEnv:
        env = super().training()
        step = env.step_wait

        def step_wait() -> Any:
            self._left -= 1
            if self._left < 0:
                raise Killed
            return step()

        env.step_wait = step_wait  # type: ignore[method-assign]
        return env


@pytest.mark.parametrize("kind", RUNS)
def test_killed_and_resumed_it_arrives_at_the_same_place(kind: str, tmp_path: Path) -> None:
    base, changes = RUNS[kind]
    config = TrainConfig.load(base, [*changes, MEASURED])
    whole = run(tmp_path / "whole", config, Environments(config))
    # In the middle of an update, some updates after a checkpoint; decisions are counted in each environment.
    at = config.training.steps // config.algorithm.n_envs * 5 // 8 + 3
    with pytest.raises(Killed):
        run(tmp_path / "killed", config, Mortal(config, at))
    resumed = run(tmp_path / "killed", config, Environments(config), resume=True)
    assert resumed.weights_sha256 == whole.weights_sha256
    assert tables(tmp_path / "killed") == tables(tmp_path / "whole")
    assert resumed.step == whole.step == config.training.steps
    assert sum(resumed.shares.values()) == pytest.approx(1.0)


# --- In short --------------------------------------------------------------------------------------------------------

LIGHT = [
    "environment.paths={kind: named, names: [indigo-5mbps-20ms, indigo-10mbps-20ms, indigo-20mbps-10ms]}",
    "evaluation={episodes: 6, baselines: [oracle], figure: false}",
    "training.simulator_threads=1",
]


# Links with a queue that ends: an LSTM that has learned nothing fills any other.
MUSES = [
    "environment.paths={kind: ranges, rate: {choice: [5mbps, 10mbps, 20mbps]}, one_way_delay: 20ms, queue: 0.5bdp}",
    "environment.flows=[]",
    "environment.episode={steps: 200}",
    "algorithm.n_envs=12",
    "algorithm.n_steps=200",
]

SHORT: dict[str, tuple[float, list[str]]] = {
    "eagle": (
        0.8,
        [
            "algorithm.n_envs=96",
            "algorithm.imitation={weight: 1, decay: 0.5, every: 5}",
            "training.steps=288000",
        ],
    ),
    "eagle_v1": (0.75, ["algorithm.n_envs=32", "algorithm.batch_size=800", "training.steps=128000"]),
    "eagle_v2": (0.7, ["algorithm.n_envs=32", "training.steps=256000"]),
    "orca": (0.9, ["algorithm.n_envs=16", "algorithm.batch_size=800", "training.steps=48000"]),
    **{
        name: (0.75, [*MUSES, "algorithm.batch_size=6", "algorithm.n_epochs=4", "training.steps=48000"])
        for name in ("muses_c3", "muses_c5", "muses_d", "muses_t")
    },
}
"""Minimum fraction of the oracle's reward, and what makes the training short."""


@pytest.mark.parametrize("name", SHORT)
@pytest.mark.long
def test_in_short(name: str, tmp_path: Path) -> None:
    """Three light links, under forty seconds on one processor; far above where it began, and not far below the
    oracle. Then the export does what torch does, and knows no expert."""
    bar, shorter = SHORT[name]
    config = TrainConfig.load(name, [*LIGHT, *shorter, "training.eval_every=32000", "training.checkpoint_every=999999"])
    display = Quiet()
    outcome = train(config, tmp_path / "run", display)
    at_first = display.measured.fraction_of_oracle(display.evaluations[0][1])
    assert outcome.best_fraction > max(bar, at_first + 0.1), (at_first, outcome)
    exported = export_policy(tmp_path / "run", episodes=2)
    assert "expert" not in json.loads(exported.card_file.read_text())["agent"]


@pytest.mark.parametrize(
    "name", ["muses_dtree", *(pytest.param(f"muses_dtree_{kind}", marks=pytest.mark.long) for kind in ("h0", "r0"))]
)
def test_a_tree_in_short_is_like_its_teacher(name: str, tmp_path: Path) -> None:
    """A tree that has learned nothing holds the window that slow start found, which is good where nothing changes; so
    its decisions are compared, and it must not be much worse than that."""
    steps = ["training.steps=9600", "training.eval_every=4800", "training.checkpoint_every=9600"]
    leaves = ["algorithm.min_leaf=20", "algorithm.min_split=40"]
    config = TrainConfig.load(name, [*LIGHT, *MUSES, *leaves, *steps])
    outcome = train(config, tmp_path / "run", Quiet())
    assert outcome.best_fraction > 0.85
    last = tables(tmp_path / "run")["progress"][-1]
    assert float(last["train/agreement"]) > 0.6
    assert int(last["distill/leaves"]) > 10
    card = json.loads(export_policy(tmp_path / "run", episodes=2).card_file.read_text())
    assert card["policy"] == {"kind": "tree", "observation_size": 16, "state_size": 0, "action_size": 5}


INDIGO = [
    "environment.paths={kind: named, names: [indigo-20mbps-20ms, indigo-50mbps-20ms, indigo-100mbps-10ms]}",
    "environment.episode={steps: 200}",
    "algorithm.n_envs=6",
    "algorithm.n_steps=200",
    "algorithm.sequence_length=50",
    "algorithm.n_epochs=10",
    "evaluation={episodes: 6, baselines: [oracle, cubic], figure: false}",
    "training.simulator_threads=1",
]


@pytest.mark.long
def test_indigo_in_short_beats_cubic(tmp_path: Path) -> None:
    """Three of its links, 200 decisions each, some seconds of training; then the export does what torch does."""
    steps = ["training.steps=24000", "training.eval_every=6000", "training.checkpoint_every=24000"]
    config = TrainConfig.load("indigo", [*INDIGO, *steps])
    display = Quiet()
    outcome = train(config, tmp_path / "run", display)
    assert outcome.best_fraction > 0.9
    cubic = display.measured.fraction_of_oracle(display.measured.rewards["cubic"])
    assert cubic is not None
    assert outcome.best_fraction > cubic
    assert outcome.shares["learner"] > 0
    exported = export_policy(tmp_path / "run", episodes=2)
    card = json.loads(exported.card_file.read_text())
    assert "expert" not in card["agent"]
    assert card["policy"] == {"kind": "lstm", "observation_size": 9, "state_size": 64, "action_size": 5}
