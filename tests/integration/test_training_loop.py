"""The training loop on a toy task: the same seed, kills, signals, full disks, TensorBoard's axis, callbacks."""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv

from ccgym.errors import PlatformError, ResultsError, SimulationError
from ccgym.training import callbacks, trainer  # noqa: F401
from ccgym.training.algorithms.config import Layers, Linear, Lstm, Normalize, PpoConfig
from ccgym.training.checkpoint import read_checkpoint, write_checkpoint
from ccgym.training.config import EvaluationConfig, PolicyStyle, TrainConfig, TrainingConfig
from ccgym.training.run_directory import RunDirectory
from ccgym.training.trainer import Outcome
from ccgym.training.training_env import Resumable
from tests import trainings
from tests.refusals import refused
from tests.toy_env import ToyVecEnv
from tests.trainings import Killed, Quiet, tables

# --- A toy task ------------------------------------------------------------------------------------------------------


class Track(ToyVecEnv):
    """Follow a number that is seen: the reward is largest where the action is half of it. Episodes vary in length."""

    def __init__(self, count: int, on_step: Callable[[], None] = lambda: None, follow: float | None = None) -> None:
        box = spaces.Box(-1.0, 1.0, (1,), np.float32)
        super().__init__(count, spaces.Box(-10.0, 10.0, (2,), np.float32), box)
        self.generators = [np.random.default_rng(i) for i in range(count)]
        self.obs = np.zeros((count, 2), np.float32)
        self.left, self.length = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self.sums = np.zeros(count)
        self._on_step, self._follow = on_step, follow

    def _begin(self, index: int) -> None:
        generator = self.generators[index]
        self.left[index] = generator.integers(5, 20)
        self.length[index], self.sums[index] = 0, 0.0
        self.obs[index] = generator.uniform(-1, 1, 2)

    def reset(self) -> np.ndarray:
        for index, seed in enumerate(self._seeds):
            if seed is not None:
                self.generators[index] = np.random.default_rng(seed)
            self._begin(index)
        self._reset_seeds()
        return self.obs.copy()

    def step_wait(self) -> Any:
        self._on_step()
        actions = self.actions[:, 0] if self._follow is None else self._follow * self.obs[:, 0]
        rewards = (1 - np.abs(actions - 0.5 * self.obs[:, 0])).astype(np.float32)
        self.sums += rewards
        self.length += 1
        self.left -= 1
        dones, infos = self.left == 0, [{} for _ in range(self.num_envs)]
        for index in range(self.num_envs):
            self.obs[index] = self.generators[index].uniform(-1, 1, 2)
            if dones[index]:
                infos[index] = {
                    "terminal_observation": self.obs[index].copy(),
                    "TimeLimit.truncated": True,
                    "episode": {"r": float(self.sums[index]), "l": int(self.length[index]), "t": 0.0},
                    "summary": {"throughput_mbps": 3.0, "delay_p95_ms": None, "loss": 0.25, "duration_s": 1.0},
                    "reward_term_sums": {"closeness": float(self.sums[index])},
                }
                self._begin(index)
        return self.obs.copy(), rewards, dones, infos

    def capture(self) -> dict[str, Any]:
        arrays = {name: getattr(self, name).copy() for name in ("obs", "left", "length", "sums")}
        return {"arrays": arrays, "generators": [one.bit_generator.state for one in self.generators]}

    def restore(self, state: Mapping[str, Any]) -> np.ndarray:
        for name, value in state["arrays"].items():
            setattr(self, name, value)
        for generator, known in zip(self.generators, state["generators"]):
            generator.bit_generator.state = known
        return self.obs.copy()


class TrainingTrack(Resumable, Track):
    """The same, to learn in."""


class ToyEnvironments:
    """What :class:`ccgym.training.environments.Environments` is for real configurations."""

    def __init__(self, config: TrainConfig, on_step: Callable[[], None] = lambda: None) -> None:
        self._config, self._on_step = config, on_step

    def training(self) -> TrainingTrack:
        return TrainingTrack(self._config.algorithm.n_envs, self._on_step)

    def evaluation(self) -> VecEnv:
        return Track(self._config.evaluation.episodes)

    def baseline(self, scheme: str) -> VecEnv:
        return Track(self._config.evaluation.episodes, follow={"oracle": 0.5, "lazy": 0.0}[scheme])


def toy_config(algorithm: str = "ppo", **training: Any) -> TrainConfig:
    """Eight updates of 64 steps."""
    parts = SimpleNamespace(model_dump=lambda **_: {"kind": "toy"}, paths=None)
    config = TrainConfig.model_construct(
        name="toy",
        agent=parts,
        environment=parts,
        algorithm=PpoConfig(
            name=algorithm,
            n_envs=4,
            n_steps=16,
            batch_size=32,
            n_epochs=2,
            learning_rate=Linear(linear=(0.02, 0.005)),
            clip_range=0.3,
            net_arch=Layers(pi=(8,), vf=(8,)),
            lstm=Lstm(hidden_size=6),
            normalize=Normalize(observation=True, reward=True),
        ),
        training=TrainingConfig(
            **({"steps": 512, "eval_every": 128, "checkpoint_every": 128, "keep_checkpoints": 2} | training)
        ),
        evaluation=EvaluationConfig(episodes=3, baselines=("oracle", "lazy"), figure=False),
        style=PolicyStyle(),
    )
    object.__setattr__(config, "__pydantic_private__", {"_written": {"agent": {}, "environment": {}}})
    return config


def run(place: Path, config: TrainConfig, *, on_step: Callable[[], None] = lambda: None, **others: Any) -> Outcome:
    return trainings.run(place, config, ToyEnvironments(config, on_step), **others)


def npz(place: Path) -> dict[str, bytes]:
    with np.load(place / "evaluations.npz") as content:
        return {name: content[name].tobytes() for name in content.files}


@pytest.fixture(scope="module", params=["ppo", pytest.param("recurrent_ppo", marks=pytest.mark.long)])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome, str]:
    """A run that nobody disturbed."""
    place = tmp_path_factory.mktemp("whole")
    return place, run(place, toy_config(request.param)), request.param


def assert_same(place: Path, outcome: Outcome, whole: tuple[Path, Outcome, str]) -> None:
    assert outcome.weights_sha256 == whole[1].weights_sha256
    assert tables(place) == tables(whole[0])
    assert npz(place) == npz(whole[0])
    assert (outcome.best_step, outcome.best_reward) == (whole[1].best_step, whole[1].best_reward)
    for model in ("best", "final"):
        here, there = (path / model / "model.json" for path in (place, whole[0]))
        assert here.read_bytes() == there.read_bytes()


def kill_at(step: int) -> Callable[[], None]:
    """Die in the middle of a rollout."""
    taken = 0

    def on_step() -> None:
        nonlocal taken
        taken += 1
        if taken == step:
            raise Killed

    return on_step


# --- The same seed, the same result ----------------------------------------------------------------------------------


def test_the_seed_alone_decides(tmp_path: Path, whole: tuple[Path, Outcome, str]) -> None:
    torch.rand(3)  # what came before does not matter
    np.random.rand(3)  # noqa: NPY002
    assert_same(tmp_path / "again", run(tmp_path / "again", toy_config(whole[2])), whole)
    often = run(tmp_path / "often", toy_config(whole[2], eval_every=64, checkpoint_every=512))
    assert often.weights_sha256 == whole[1].weights_sha256
    assert run(tmp_path / "other", toy_config(whole[2], seed=2)).weights_sha256 != whole[1].weights_sha256


def test_it_learns_and_the_best_model_is_kept(whole: tuple[Path, Outcome, str]) -> None:
    place, outcome, _ = whole
    rows = tables(whole[0])["evaluations"]
    assert [int(row["step"]) for row in rows] == [0, 128, 256, 384, 512]
    assert float(rows[-1]["eval/fraction_of_oracle"]) > float(rows[0]["eval/fraction_of_oracle"])
    assert 0.6 < outcome.best_fraction <= 1
    best = max(rows, key=lambda row: float(row["eval/mean_reward"]))
    assert (outcome.best_step, outcome.best_reward) == (int(best["step"]), float(best["eval/mean_reward"]))
    assert {file.name for file in (place / "best").iterdir()} == {"model.json", "model.zip", "vecnormalize.pkl"}
    assert len(list((place / "checkpoints").glob("step_*"))) == 2


# --- Kills and signals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [1, 40, 127])
def test_killed_and_resumed_is_the_same_run(tmp_path: Path, whole: tuple[Path, Outcome, str], step: int) -> None:
    config = toy_config(whole[2])
    with pytest.raises(Killed):
        run(tmp_path, config, on_step=kill_at(step))
    with (tmp_path / "progress.csv").open("a") as file:
        file.write("99,half a ro")
    assert_same(tmp_path, run(tmp_path, config, resume=True), whole)


def test_a_minute_without_a_checkpoint_is_followed_by_one(tmp_path: Path) -> None:
    now = 0.0

    def on_step() -> None:
        nonlocal now
        now += 2.0  # 16 of them are an update

    config = toy_config(checkpoint_every=10_000, keep_checkpoints=99)
    run(tmp_path, config, on_step=on_step, clock=lambda: now)
    written = {one.name for one in (tmp_path / "checkpoints").glob("step_*")}
    assert written == {"step_0", "step_128", "step_256", "step_384", "step_512"}


@pytest.mark.parametrize("when", ["baselines", "evaluation"])
def test_the_first_checkpoint_comes_before_anything_is_measured(
    tmp_path: Path, whole: tuple[Path, Outcome, str], when: str
) -> None:
    def kill(*_: Any, **__: Any) -> None:
        raise Killed

    display = Quiet()
    setattr(display, when, kill)
    config = toy_config(whole[2])
    with pytest.raises(Killed):
        run(tmp_path, config, display=display)
    assert [one.name for one in (tmp_path / "checkpoints").glob("step_*")] == ["step_0"]
    assert_same(tmp_path, run(tmp_path, config, resume=True), whole)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_after_the_update(tmp_path: Path, whole: tuple[Path, Outcome, str], number: int) -> None:
    taken = 0

    def on_step() -> None:
        nonlocal taken
        taken += 1
        if taken == 40:  # in the third update, where no checkpoint is due
            os.kill(os.getpid(), number)

    config, display, before = toy_config(whole[2]), Quiet(), signal.getsignal(number)
    outcome = run(tmp_path, config, on_step=on_step, display=display)
    assert outcome.stopped
    assert outcome.step == 192
    assert any("stopping after this update" in notice for notice in display.notices)
    assert signal.getsignal(number) == before
    outcome = run(tmp_path, config, resume=True)
    assert not outcome.stopped
    assert_same(tmp_path, outcome, whole)


def test_a_second_signal_stops_at_once(tmp_path: Path) -> None:
    def on_step() -> None:
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, toy_config(), on_step=on_step)


def test_killed_before_the_first_checkpoint(tmp_path: Path, whole: tuple[Path, Outcome, str]) -> None:
    config, display = toy_config(whole[2]), Quiet()
    with RunDirectory(tmp_path) as directory:
        directory.claim(config.as_yaml(), {}, [])
    assert_same(tmp_path, run(tmp_path, config, resume=True, display=display), whole)
    assert any("before the first checkpoint" in notice for notice in display.notices)


def test_a_finished_run_can_go_on(tmp_path: Path) -> None:
    run(tmp_path, toy_config(steps=256))
    outcome = run(tmp_path, toy_config(steps=320), resume=True)
    assert outcome.step == 320
    assert run(tmp_path, toy_config(steps=320), resume=True).weights_sha256 == outcome.weights_sha256


def test_the_time_limit_ends_a_run_properly(tmp_path: Path) -> None:
    outcome = run(tmp_path, toy_config(steps=10**9, time_limit="0.01s"))
    assert not outcome.stopped
    assert outcome.step < 10_000
    rows = tables(tmp_path)["evaluations"]
    assert int(rows[-1]["step"]) == outcome.step
    assert (tmp_path / "final" / "model.zip").exists()


# --- Damage ----------------------------------------------------------------------------------------------------------


def test_a_damaged_checkpoint_is_named_and_the_previous_one_used(
    tmp_path: Path, whole: tuple[Path, Outcome, str]
) -> None:
    config, display = toy_config(whole[2]), Quiet()
    with pytest.raises(Killed):
        run(tmp_path, config, on_step=kill_at(100))
    newest = tmp_path / "checkpoints" / "step_384" / "state.pt"
    newest.write_bytes(newest.read_bytes()[:-10])
    assert_same(tmp_path, run(tmp_path, config, resume=True, display=display), whole)
    assert any("step_384 is damaged" in notice and "step 256" in notice for notice in display.notices)


def test_all_checkpoints_damaged(tmp_path: Path) -> None:
    run(tmp_path, toy_config(steps=128))
    for file in tmp_path.glob("checkpoints/step_*/rl_model.zip"):
        file.write_bytes(b"")
    with refused(ResultsError, "checkpoint-damaged at checkpoints"):
        run(tmp_path, toy_config(), resume=True)


def test_a_full_disk_ends_the_run_and_nothing_is_lost(
    tmp_path: Path, whole: tuple[Path, Outcome, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = toy_config(whole[2])
    real, writes = os.write, 0

    def write(descriptor: int, data: Any) -> int:
        nonlocal writes
        writes += 1
        if writes > 16:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, data)

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", write)
        with refused(PlatformError, "file-unwritable at checkpoints/step_256"):
            run(tmp_path, config)
    assert_same(tmp_path, run(tmp_path, config, resume=True), whole)


def test_another_network_does_not_fit(tmp_path: Path) -> None:
    run(tmp_path, toy_config(steps=128))
    config = toy_config()
    algorithm = config.algorithm.model_copy(update={"net_arch": Layers(pi=(9,), vf=(9,))})
    other = config.model_copy(update={"algorithm": algorithm})
    with refused(ResultsError, "resume-changed at config.yaml"):
        run(tmp_path, other, resume=True)


def test_divergence_is_named(tmp_path: Path) -> None:
    config = toy_config()
    algorithm = config.algorithm.model_copy(update={"learning_rate": 1e30, "max_grad_norm": 1e30})
    with refused(SimulationError, "learning-diverged"):
        run(tmp_path, config.model_copy(update={"algorithm": algorithm}))


# --- TensorBoard -----------------------------------------------------------------------------------------------------


def events(place: Path) -> Any:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    return EventAccumulator(str(place), size_guidance={"scalars": 0, "images": 0}).Reload()


def test_the_axis_goes_on_when_a_run_is_resumed(tmp_path: Path, whole: tuple[Path, Outcome, str]) -> None:
    config = toy_config(whole[2])
    for resume, on_step in ((False, kill_at(60)), (True, kill_at(50)), (True, lambda: None)):
        try:
            run(tmp_path, config, resume=resume, on_step=on_step)
        except Killed:
            for file in tmp_path.glob("events.out.tfevents*"):
                with file.open("ab") as tail:  # a record that was being written
                    tail.write(b"\x18\x00\x00\x00")
            # TensorBoard reads files in the order of their names, which begin with the second in which they were made.
            time.sleep(1.1)
    here, there = events(tmp_path), events(whole[0])
    assert here.Tags()["scalars"] == there.Tags()["scalars"]
    for tag in here.Tags()["scalars"]:
        steps = [event.step for event in here.Scalars(tag)]
        assert steps == [event.step for event in there.Scalars(tag)], tag
        if not tag.startswith(("time/", "sys/")):
            assert [e.value for e in here.Scalars(tag)] == [e.value for e in there.Scalars(tag)], tag


def test_environments_that_changed_are_noticed(tmp_path: Path) -> None:
    run(tmp_path, toy_config(steps=128))
    checkpoint = read_checkpoint(tmp_path / "checkpoints" / "step_128")
    checkpoint.state["environments"]["environments"]["arrays"]["obs"][0, 0] += 1
    write_checkpoint(tmp_path / "checkpoints", checkpoint, keep=1)
    with refused(ResultsError, "resume-changed"):
        run(tmp_path, toy_config(), resume=True)
