"""Training on real paths: the loop around them, with senders that are fakes."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ccgym.envs import real_episode
from ccgym.errors import ConfigError
from ccgym.training.config import TrainConfig
from ccgym.training.model import load_model, weights_hash
from ccgym.training.run_directory import RunDirectory
from ccgym.training.trainer import Outcome, Trainer
from tests.refusals import refused
from tests.trainings import Quiet
from tests.unit.fake_run import Behavior, FakeRun

SMALL = (
    "environment.path=12mbps", "environment.paths=null", "environment.episode.steps=8", "algorithm.n_envs=1",
    "algorithm.n_steps=16", "algorithm.batch_size=16", "algorithm.n_epochs=1", "training.eval_every=1000",
    "training.checkpoint_every=16", "evaluation.episodes=2", "evaluation.baselines=[]", "evaluation.figure=false",
)  # fmt: skip
REAL = "environment.backend=emulated"


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Behavior]:
    """Run processes are fakes."""
    behavior = Behavior(lapses=1)
    monkeypatch.setattr(real_episode, "RunProcess", lambda plan: FakeRun(plan, behavior))
    yield behavior
    for run in behavior.runs:
        run.end()


def config(*overrides: str) -> TrainConfig:
    return TrainConfig.load("aurora", [*SMALL, *overrides])


def train(place: Path, made: TrainConfig, display: Quiet, *, resume: bool = False) -> tuple[Trainer, Outcome]:
    with RunDirectory(place) as directory:
        if not resume:
            directory.claim(made.as_yaml(), {}, [])
        trainer = Trainer(made, directory, display, device="cpu")
        return trainer, trainer.train(resume=resume)


def test_rollouts_begin_episodes_and_nothing_runs_between_them(fake: Behavior, tmp_path: Path) -> None:
    display = Quiet()
    made = config(REAL, "training.steps=32")
    _, outcome = train(tmp_path / "run", made, display)
    assert outcome.step == 32
    assert fake.alive == 0
    # One to see that it works, three for each of two rollouts of two episodes, two for each of two evaluations.
    assert len(fake.runs) == 1 + 2 * 3 + 2 * 2
    with (tmp_path / "run" / "progress.csv").open() as file:
        rows = list(csv.DictReader(file))
    missed = [float(row["environment/missed_deadlines"]) for row in rows if row["environment/missed_deadlines"]]
    assert missed == [16, 16], "one in each step of a rollout"

    longer = config(REAL, "training.steps=48")
    _, outcome = train(tmp_path / "run", longer, display, resume=True)
    assert outcome.step == 48
    assert any("cannot be restored" in notice for notice in display.notices)
    assert fake.alive == 0


def test_training_goes_on_from_another_run_s_policy(fake: Behavior, tmp_path: Path) -> None:
    first = tmp_path / "simulated"
    train(first, config("training.steps=16"), Quiet())
    assert fake.runs == []
    known = load_model(first)
    trainer, _ = train(tmp_path / "real", config(REAL, "training.steps=16",
                                                 f"training.start_from={first}"), Quiet())  # fmt: skip
    assert weights_hash(trainer.model) != weights_hash(known.model), "it has learned something since"
    with RunDirectory(tmp_path / "other") as directory, ExitStack() as stack:
        directory.claim("", {}, [])
        fresh = Trainer(config(REAL, f"training.start_from={first}"), directory, Quiet(), device="cpu")
        fresh._build(None, stack)
        assert weights_hash(fresh.model) == weights_hash(known.model)
    assert fake.alive == 0
    with refused(ConfigError, "shape-mismatch at training.start_from"):
        train(tmp_path / "unlike", config("algorithm.net_arch=[4]", f"training.start_from={first}"), Quiet())


def test_too_many_real_paths_are_refused() -> None:
    with refused(ConfigError, "out-of-range at --set environment.backend=emulated: environment.backend"):
        config(REAL, "algorithm.n_envs=1000")
