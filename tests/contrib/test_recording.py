"""Several seeds trained, confirmed, recorded and drawn; a record that is repeated, resumed or does not fit."""

from __future__ import annotations

import csv
import json
import shutil
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ccgym.cli.main import main
from ccgym.contrib import recording
from ccgym.contrib.comparison import compare
from ccgym.contrib.confirmation import confirmation_seed
from ccgym.contrib.recording import SeedRecord, curves_text, median_seed, record
from ccgym.errors import ConfigError, ResultsError
from ccgym.report.figures.learning_curves import Curve, curve_figure, medians
from ccgym.report.style import house_style
from ccgym.schemes import policies
from ccgym.schemes.style import SchemeStyle
from ccgym.training.config import TrainConfig
from ccgym.training.evaluation import evaluation_seed
from ccgym.training.run_directory import RunDirectory
from tests.refusals import explained, refused

ROOT = Path(__file__).resolve().parents[2]

SMALL = f"""\
extends: {ROOT}/configs/aurora.yaml
name: small
environment: {{episode: {{steps: 30}}}}
algorithm: {{n_envs: 4, n_steps: 30, batch_size: 60, n_epochs: 2, net_arch: [8]}}
training: {{steps: 360, eval_every: 120, checkpoint_every: 120}}
evaluation: {{episodes: 3, baselines: [oracle, cubic], figure: false}}
"""
FILES = ("policy.onnx", "card.json", "curves.csv", "seeds.json")


class Silent:
    """No observer gets anything."""

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *_: object) -> None: ...
    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


def recorded(
    config: TrainConfig, runs: Path, out: Path, seeds: tuple[int, ...] = (3, 1, 2), **settings: Any
) -> tuple[recording.Recording | None, list[str]]:
    said: list[str] = []
    command = ["ccgym", "train", "seeds", "small"]
    made = record(
        config, seeds, runs, out, say=said.append, display=lambda _: Silent(), command=command, episodes=8, **settings
    )
    return made, said


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> TrainConfig:
    file = tmp_path_factory.mktemp("config") / "small.yaml"
    file.write_text(SMALL)
    return TrainConfig.load(file)


@pytest.fixture(scope="module")
def place(config: TrainConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the runs and the record of three seeds."""
    place = tmp_path_factory.mktemp("record")
    made, said = recorded(config, place / "runs", place / "out")
    assert made is not None
    assert [line for line in said if "training" in line] == [f"seed {n}: training, 360 steps" for n in (1, 2, 3)]
    return place


def summary(place: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((place / "out" / "seeds.json").read_text())
    return content


# --- The record ------------------------------------------------------------------------------------------------------


def test_the_median_seed_is_exported(place: Path) -> None:
    content = summary(place)
    policy = policies.load(place / "out" / "policy.onnx")
    assert [row["seed"] for row in content["seeds"]] == [1, 2, 3]
    ranked = sorted(content["seeds"], key=lambda row: row["confirmed_reward"])
    assert content["exported"] == {"seed": ranked[1]["seed"], "onnx_sha256": policy.card.onnx_sha256}
    assert policy.card.training["seed"] == ranked[1]["seed"]
    assert len({row["weights_sha256"] for row in content["seeds"]}) == 3
    assert content["command"] == "ccgym train seeds small"
    assert [one["seeds"] for one in content["machines"]] == [[1, 2, 3]]
    assert content["machines"][0]["machine"]["cores"] >= 1


def test_shares_are_of_the_oracle_on_the_same_draws(place: Path) -> None:
    content = summary(place)
    rewards = content["confirmation"]["mean_reward"]
    assert content["confirmation"]["episodes"] == 8
    assert set(rewards) == {"oracle", "cubic"}
    assert content["confirmation"]["fraction_of_oracle"] == {"cubic": rewards["cubic"] / rewards["oracle"]}
    for row in content["seeds"]:
        assert row["confirmed_fraction"] == row["confirmed_reward"] / rewards["oracle"]
    # Environment i draws from seed + i.
    config = TrainConfig.load("aurora")
    assert abs(confirmation_seed(config) - evaluation_seed(config)) > recording.CONFIRMATION_EPISODES
    held_out = json.loads((place / "runs" / "small-1" / "baselines.json").read_text())["rewards"]
    assert content["held_out"]["fraction_of_oracle"] == {"cubic": held_out["cubic"] / held_out["oracle"]}
    assert held_out["oracle"] != rewards["oracle"]


def test_curves_have_every_evaluation(place: Path) -> None:
    with (place / "out" / "curves.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["seed"], row["step"]) for row in rows] == [
        (str(seed), str(step)) for seed in (1, 2, 3) for step in (0, 120, 240, 360)
    ]
    content = summary(place)
    for one in content["seeds"]:
        curve = [row for row in rows if row["seed"] == str(one["seed"])]
        best = max(curve, key=lambda row: float(row["mean_reward"]))
        assert int(best["step"]) == one["best_step"]
        assert float(best["fraction_of_oracle"]) == pytest.approx(one["best_fraction"], abs=1e-5)
        times = [float(row["wall_s"]) for row in curve]
        assert times[0] == 0
        assert times == sorted(times)
        assert times[-1] == one["wall_s"]


def test_finished_runs_are_not_trained_again(config: TrainConfig, place: Path, tmp_path: Path) -> None:
    made, said = recorded(config, place / "runs", tmp_path)
    assert made is not None
    assert said[:3] == [f"seed {n}: trained already" for n in (1, 2, 3)]
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (place / "out" / name).read_bytes()


def test_a_run_that_was_begun_is_resumed(config: TrainConfig, place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "runs" / "small-1", tmp_path / "small-1")
    shutil.rmtree(tmp_path / "small-1" / "final")
    shutil.rmtree(tmp_path / "small-1" / "checkpoints" / "step_360")
    made, said = recorded(config, tmp_path, tmp_path / "out", (1,))
    assert said[0] == "seed 1: resuming, 360 steps"
    assert made.seeds[0].weights_sha256 == summary(place)["seeds"][0]["weights_sha256"]
    assert made.seeds[0].confirmed_reward == summary(place)["seeds"][0]["confirmed_reward"]


def test_a_stopped_training_records_nothing(
    config: TrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "train", lambda *_, **__: SimpleNamespace(stopped=True))
    made, _ = recorded(config, tmp_path, tmp_path / "out")
    assert made is None
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        (["training.steps=480"], "runs-differ at runs/small-1"),
        (["algorithm.gamma=0.9"], "runs-differ at runs/small-1"),
        (["training.simulator_threads=1", "training.keep_checkpoints=5"], None),  # of no influence
    ],
)
def test_runs_of_another_configuration_are_refused(
    place: Path, tmp_path: Path, changes: list[str], found: str | None
) -> None:
    config = TrainConfig.load(place / "runs" / "small-1" / "config.yaml", changes)
    with nullcontext() if found is None else refused(ResultsError, found):
        assert recorded(config, place / "runs", tmp_path)[0] is not None


def test_what_cannot_be_recorded(config: TrainConfig, tmp_path: Path) -> None:
    for seeds in ((), (1, 1)):
        with refused(ConfigError, "wrong-count at --seeds"):
            recorded(config, tmp_path, tmp_path, seeds)
    blind = config.model_copy(update={"evaluation": config.evaluation.model_copy(update={"baselines": ("bbr",)})})
    with refused(ConfigError, "key-missing at evaluation.baselines"):
        recorded(blind, tmp_path, tmp_path)
    file = tmp_path / "costs.yaml"
    file.write_text(SMALL + "agent: {reward: {terms: [{term: latency, weight: -1, unit: s}]}}\n")
    with refused(ResultsError, "out-of-range"):
        recorded(TrainConfig.load(file), tmp_path / "runs", tmp_path / "out", seeds=(1,))


def seed_record(seed: int, reward: float) -> SeedRecord:
    return SeedRecord(seed, Path(), (), 0, 0.0, reward, 0.0, "")


def test_the_median_of_an_even_number_is_the_lower_one() -> None:
    records = [seed_record(1, 4.0), seed_record(2, 1.0), seed_record(3, 3.0), seed_record(4, 2.0)]
    assert median_seed(records).seed == 4
    assert median_seed(records[:3]).seed == 3
    assert curves_text(records) == "seed,step,mean_reward,fraction_of_oracle,wall_s\n"


def test_time_goes_on_when_a_run_is_resumed(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.progress.write_text("step,time/time_elapsed\n0,\n10,3\n20,7\n30,2\n40,4\n")
    run.evaluations.write_text("step,eval/mean_reward,eval/fraction_of_oracle\n0,1,0.1\n20,2,0.2\n30,8,0.8\n40,9,0.9\n")
    curve = recording.read_curve(run)
    assert [point.wall_s for point in curve] == [0, 7, 9, 11]
    reached = SeedRecord(1, tmp_path, curve, 40, 0.9, 9.0, 0.9, "").reached
    assert (reached.step, reached.wall_s) == (30, 9)


# --- The command and the figure --------------------------------------------------------------------------------------


def test_the_command(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(SMALL)
    out, figure = tmp_path / "out", tmp_path / "img" / "curve.png"
    words = ["train", "seeds", str(file), "--seeds", "2,1", "--runs", str(place / "runs"), "--out", str(out)]
    assert main(words) == 0
    content = json.loads((out / "seeds.json").read_text())
    assert content["command"] == "ccgym train seeds small --seeds 1,2"
    assert content["confirmation"]["episodes"] == recording.CONFIRMATION_EPISODES
    assert main(["plot", "curves", str(out / "policy.onnx"), "-o", str(figure)]) == 0
    assert str(figure) in capsys.readouterr().out
    assert figure.read_bytes()[:4] == b"\x89PNG"
    assert main(["train", "seeds", str(file), "--seeds", "one"]) == 2
    explained(capsys.readouterr().err, "text-malformed at --seeds")
    assert main(["plot", "searches", str(place / "runs" / "small-1"), "-o", str(figure)]) == 2
    explained(capsys.readouterr().err, "paths-unsuitable at RUN")


def test_trainings_are_compared(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the rewards that the record confirms, on the same draws."""
    shutil.copytree(place / "runs" / "small-3", tmp_path / "other")
    config = tmp_path / "other" / "config.yaml"
    config.write_text(config.read_text().replace("name: small", "name: other"))
    runs = [place / "runs" / f"small-{seed}" for seed in (1, 2)]
    found = compare([*runs, tmp_path / "other"], episodes=8)
    confirmed = {one["seed"]: one["confirmed_reward"] for one in summary(place)["seeds"]}
    by_name = {one.name: one for one in found}
    assert set(by_name) == {"small", "other", "oracle", "cubic"}
    assert by_name["small"].rewards.mean(axis=1) == pytest.approx([confirmed[1], confirmed[2]])
    assert by_name["other"].mean.mean == pytest.approx(confirmed[3])
    assert by_name["other"].seeds == (3,)
    assert by_name["small"].steps == 360
    assert by_name["small"].gain is None
    gain = by_name["other"].gain
    assert gain.mean == pytest.approx(confirmed[3] - (confirmed[1] + confirmed[2]) / 2)
    assert gain.low <= gain.mean <= gain.high
    table = tmp_path / "table.csv"
    words = [*map(str, runs), str(tmp_path / "other"), "--over", "other", "--draws", "4", "--csv", str(table)]
    assert main(["compare", "trainings", *words]) == 0
    said = capsys.readouterr()
    assert "over other (95 %)" in said.out
    assert "measuring: 20 in" in said.err, "four draws of three models and two baselines"
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert {row["name"]: bool(row["gain"]) for row in rows} == {
        "small": True, "other": False, "oracle": True, "cubic": True
    }  # fmt: skip


def test_unlike_trainings_are_not_compared(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = place / "runs" / "small-1"
    assert main(["compare", "trainings", str(run), "--over", "smal"]) == 2
    explained(capsys.readouterr().err, "unknown-name at --over")
    shutil.copytree(run, tmp_path / "other")
    config = tmp_path / "other" / "config.yaml"
    config.write_text(config.read_text().replace("delta: 0.025", "delta: 0.05"))
    assert main(["compare", "trainings", str(run), str(tmp_path / "other")]) == 2
    explained(capsys.readouterr().err, "runs-differ at other")


def test_the_figure_shows_every_seed_and_their_median() -> None:
    def curve(seed: int, *fractions: float) -> Curve:
        at = np.arange(len(fractions))
        return Curve(seed, 1e6 * at, np.array(fractions), 100.0 * seed * at)

    curves = [curve(1, 0.4, 0.7, 0.9), curve(2, 0.5, 0.85, 0.95), curve(3, 0.3, 0.6, 0.8, 0.9)]
    steps, middle, wall = medians(curves)
    assert (steps.tolist(), middle.tolist(), wall.tolist()) == ([0, 1e6, 2e6], [0.4, 0.7, 0.9], [0, 200, 400])
    styles = {"bbr": SchemeStyle("bbr", "TCP BBR", "gold", "^"), "cubic": SchemeStyle("cubic", "Cubic", "black", "*")}
    with house_style():
        figure = curve_figure(curves, {"bbr": 0.6, "cubic": -0.2}, styles, title="a title")
        alone = curve_figure(curves[:1], {}, {})
    _, above = figure.axes
    assert [len(one.axes[0].get_legend().get_texts()) for one in (figure, alone)] == [6, 2]
    assert [float(tick.get_text()) for tick in above.get_xticklabels()] == [0, 60, 120, 180, 240, 300, 360]
