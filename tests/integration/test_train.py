"""``train.py`` from end to end in the simulator: results, kills, signals, TensorBoard, errors."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import resource
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from ccgym.cli.main import main as cli
from ccgym.training.checkpoint import read_checkpoint
from tests.commands import export
from tests.commands import train as main
from tests.refusals import explained
from tests.trainings import tables

ROOT = Path(__file__).resolve().parents[2]

SMALL = """\
extends: {root}/configs/aurora.yaml
name: small
environment: {{episode: {{steps: 40}}}}
algorithm: {{n_envs: 8, n_steps: 24, batch_size: 64, net_arch: [8], critic: same,
  normalize: {{observation: true, reward: true}}}}
training: {{steps: 1500, eval_every: 400, checkpoint_every: 300}}
evaluation: {{episodes: 4, baselines: [oracle, cubic]}}
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("config") / "small.yaml"
    file.write_text(SMALL.format(root=ROOT))
    return file


@pytest.fixture(scope="module")
def whole(config: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run that nobody disturbed."""
    place = tmp_path_factory.mktemp("whole") / "run"
    assert main(["--config", str(config), "--run-dir", str(place), "--no-export"]) == 0
    return place


def card(place: Path, which: str = "final") -> dict[str, object]:
    content: dict[str, object] = json.loads((place / which / "model.json").read_text())
    return content


def start(*words: str) -> subprocess.Popen[str]:
    """Run train.py as a process of its own."""
    return subprocess.Popen(
        [sys.executable, str(ROOT / "train.py"), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
    )


def wait_for(file: Path, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while not file.exists():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.005)


# --- What a run leaves ------------------------------------------------------------------------------------------------


def test_a_run_leaves_everything(whole: Path) -> None:
    files = (
        "config.yaml command.txt versions.json seeds.json baselines.json progress.csv evaluations.csv evaluations.npz"
    )
    assert {*files.split(), "checkpoints", "best", "final"} <= {file.name for file in whole.iterdir()}
    evaluations = tables(whole)["evaluations"]
    assert [int(row["step"]) for row in evaluations] == [0, 576, 960, 1344, 1536]
    terms = [float(row[name]) for row in evaluations[-1:] for name in row if name.startswith("reward/")]
    assert sum(terms) == pytest.approx(float(evaluations[-1]["eval/mean_reward"]))
    baselines = json.loads((whole / "baselines.json").read_text())
    assert baselines["rewards"]["oracle"] > baselines["rewards"]["cubic"]
    assert 0.5 < baselines["metrics"]["oracle"]["utilization"] <= 1.001


def test_tensorboard_sees_it(whole: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    seen = EventAccumulator(str(whole), size_guidance={"images": 0}).Reload()
    tags = seen.Tags()
    wanted = """
        rollout/ep_rew_mean rollout/ep_len_mean train/approx_kl train/value_loss
        eval/mean_reward eval/fraction_of_oracle eval/baseline_oracle
        net/throughput_mbps net/rtt_ms_p95 net/delay_p95_ms net/loss net/utilization
        reward/throughput reward/latency reward/loss
        sys/decision_ms sys/steps_per_second sys/rss_mib sys/cpu_percent
        time/fps time/share_environment time/share_learner time/share_rest
    """
    assert {*wanted.split()} <= set(tags["scalars"])
    assert [event.step for event in seen.Images("episode/held_out_path_1")] == [0, 576, 960, 1344, 1536]
    assert {"config/text_summary", "versions/text_summary"} <= set(tags["tensors"])


def test_the_resolved_configuration_gives_the_same_run(whole: Path, tmp_path: Path) -> None:
    place = tmp_path / "again"
    assert main(["--config", str(whole / "config.yaml"), "--run-dir", str(place), "--no-export", "--threads", "2"]) == 0
    assert card(place) == card(whole)
    assert tables(place) == tables(whole)


def test_the_best_model_can_be_loaded_and_does_what_was_measured(whole: Path) -> None:
    import numpy as np

    from ccgym.training import load_model
    from ccgym.training.environments import Environments
    from ccgym.training.evaluation import evaluate, evaluation_seed

    trained = load_model(whole)
    mean, variance = np.array(trained.statistics["mean"]), np.array(trained.statistics["variance"])

    def act(observations: np.ndarray, starts: np.ndarray) -> np.ndarray:
        scaled = (observations - mean) / np.sqrt(variance + trained.statistics["epsilon"])
        clipped = np.clip(scaled, -trained.statistics["clip"], trained.statistics["clip"]).astype(np.float32)
        return trained.model.predict(clipped, deterministic=True)[0]

    env = Environments(trained.config).evaluation()
    assert evaluate(env, act, evaluation_seed(trained.config)).mean_reward == card(whole, "best")["mean_reward"]


# --- Kills and signals ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "after_s"),
    [
        (signal.SIGKILL, 0.0),
        pytest.param(signal.SIGKILL, 0.3, marks=pytest.mark.long),
        pytest.param(signal.SIGTERM, 0.0, marks=pytest.mark.long),
    ],
)
def test_killed_and_resumed_is_the_same_run(
    config: Path, whole: Path, tmp_path: Path, number: int, after_s: float
) -> None:
    place = tmp_path / "run"
    process = start("--config", str(config), "--run-dir", str(place), "--no-export")
    wait_for(place / "checkpoints" / "step_384", process)
    time.sleep(after_s)
    process.send_signal(number)
    output = process.communicate(timeout=60)[0]
    if number == signal.SIGTERM:
        assert process.returncode == 130, output
        assert f"python train.py --resume {place}" in output
    assert main(["--resume", str(place), "--no-export"]) == 0
    assert card(place) == card(whole)
    assert card(place, "best") == card(whole, "best")
    assert tables(place) == tables(whole)


# --- Kinds of training ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("recurrent", {"algorithm": {"name": "recurrent_ppo", "lstm": {"hidden_size": 8}}}),
        ("privileged", {"algorithm": {"critic": "privileged", "normalize": {"observation": False}}}),
        (
            "curriculum",
            {"environment": {"paths": {"kind": "stages", "stages": [
                {"until": 0.5, "paths": "genet_rl1"}, {"until": 1.0, "paths": "aurora"},
            ]}}},
        ),
        (
            "gap_search",
            {"environment": {"paths": {
                "kind": "gap_search", "paths": "genet_rl1", "every": 400, "baseline": "cubic", "traces": 2,
                "random": 2, "guided": 1,
            }}},
        ),
        ("several", {
            "environment": {
                "paths": "aurora",
                "learners": [{}, {"start": {"uniform": ["0s", "2s"]}, "extra_rtt": "80ms", "probability": 0.5}],
                "earlier_selves": {"every": 400, "keep": 1, "flows": [{"probability": 0.8}]},
                "flows": [{"scheme": "cubic", "source": {"kind": "rate", "rate": [["0s", "1mbps"], ["2s", "2mbps"]]}}],
            },
            "algorithm": {"critic": "privileged", "n_steps": 12, "batch_size": 48, "normalize": {"reward": True}},
        }),
        ("gap_bins", {"environment": {"paths": {
            "kind": "gap_bins", "paths": "genet_rl1", "bounds": [0.2, 0.4], "pool": 6,
        }}}),
    ],
)  # fmt: skip
def test_killed_in_the_middle_of_other_kinds(config: Path, tmp_path: Path, name: str, changes: dict[str, Any]) -> None:
    content = yaml.safe_load(config.read_text())
    for section, values in changes.items():
        content[section] |= values
    content["evaluation"] |= {"figure": False, "baselines": ["oracle"]}
    if "environment" in changes:  # the base file's paths would be merged with these
        base = yaml.safe_load(Path(content.pop("extends")).read_text())
        content = {**base, **content}
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(content))
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert main(["--config", str(file), "--run-dir", str(whole), "--no-export"]) == 0
    shutil.copytree(whole, killed)
    for directory in (killed / "checkpoints").glob("step_*"):
        if directory.name == "step_1536":
            shutil.rmtree(directory)
    assert main(["--resume", str(killed), "--no-export"]) == 0
    assert card(killed) == card(whole)
    assert tables(killed) == tables(whole)
    if name == "curriculum":
        levels = [float(row["curriculum/level"]) for row in tables(killed)["progress"] if row["curriculum/level"]]
        assert levels == sorted(levels)
        assert set(levels) == {0.0, 1.0}
    if name == "gap_search":
        rows = tables(whole)["curriculum"]
        assert [(row["step"], row["guided"]) for row in rows] == [
            (step, guided) for step in ("576", "960", "1344") for guided in ("0", "0", "1")
        ]
        for step in ("576", "960", "1344"):
            gaps = {row["gap"]: row["joined"] for row in rows if row["step"] == step}
            assert [joined for gap, joined in gaps.items() if float(gap) == max(map(float, gaps))] == ["1"]
            assert sorted(gaps.values()) == ["0", "0", "1"]
        assert cli(["plot", "searches", str(whole), "-o", str(tmp_path / "found.png")]) == 0
        progress = tables(whole)["progress"]
        assert [row["curriculum/level"] for row in progress][-1] == "3.0"
        assert [row["step"] for row in progress if row["curriculum/gap"]] == ["576", "960", "1344"]
    if name == "several":
        state = read_checkpoint(killed / "checkpoints" / "step_1536").state["environments"]
        # That of the latest period, and older ones that steer flows of episodes under way.
        steps = [one["step"] for one in state["earlier"]]
        assert steps == sorted(steps)
        assert steps[-1] == 1344
        specs = [episode["spec"] for episode in state["environments"]["episodes"]]
        names = {flow["params"]["policy"] for spec in specs for flow in json.loads(spec)["flows"]
                 if "policy" in flow["params"]}  # fmt: skip
        assert len(names) >= 1
        assert {int(one.partition("@")[0].rpartition("-")[2]) for one in names} <= set(steps)
        assert all(0 < float(row["net/jain"]) <= 1 for row in tables(whole)["evaluations"])
    if name == "gap_bins":
        rows = tables(whole)["curriculum"]
        assert len(rows) == 6
        assert all(float(row["gap"]) == float(row["reward_oracle"]) - float(row["reward_cubic"]) for row in rows)


# --- The command line -------------------------------------------------------------------------------------------------


def test_a_resumed_run_is_the_same_run(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--resume", str(whole), "--seed", "2"]) == 2
    explained(capsys.readouterr().err, "resume-changed")
    assert main(["--config", str(whole / "config.yaml"), "--run-dir", str(whole)]) == 2
    explained(capsys.readouterr().err, "directory-taken at run")


def test_an_edited_configuration_is_not_resumed(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "run"
    shutil.copytree(whole, place)
    text = (place / "config.yaml").read_text()
    edited = text.replace("gamma: 0.95", "gamma: 0.5")
    assert edited != text
    (place / "config.yaml").write_text(edited)
    before = {file: file.read_bytes() for file in place.rglob("*") if file.is_file() and file.name != ".ccgym_lock"}
    assert main(["--resume", str(place), "--steps", "3000", "--no-export"]) == 2
    explained(capsys.readouterr().err, "resume-changed at run/config.yaml")
    assert {file: file.read_bytes() for file in before} == before
    # Put back, or changed in what does not matter, it goes on.
    (place / "config.yaml").write_text(text)
    assert main(["--resume", str(place), "--set", "style.label=Mine", "--steps", "1600", "--no-export"]) == 0


@pytest.mark.parametrize("marker", ["ccgym_manifest.json", "ccgym_experiment.json"])
def test_results_of_another_kind_are_left_alone(
    marker: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / marker).write_text("{}")
    assert main(["--config", "aurora", "--run-dir", str(tmp_path)]) == 2
    explained(capsys.readouterr().err, "directory-taken")
    assert [file.name for file in tmp_path.iterdir()] == [marker]


@pytest.mark.parametrize(
    ("setting", "what"),
    [
        ("--device=cuda:99", "unknown-device at --device"),
        ("--set=training.start_from=nowhere", "run-missing at nowhere"),
    ],
)
def test_what_cannot_begin_leaves_no_directory(
    setting: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["--config", "aurora", setting]) == 2
    assert list(tmp_path.iterdir()) == []
    explained(capsys.readouterr().err, what)


@pytest.mark.parametrize("room", [2_000, pytest.param(60_000, marks=pytest.mark.long)])
def test_a_disk_that_takes_no_more_ends_in_one_error(room: int, config: Path, tmp_path: Path) -> None:
    """Files may be so many bytes long: too few for the configuration, or for the events that a thread writes."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    done = subprocess.run(
        [sys.executable, str(ROOT / "train.py"), "--config", str(config), "--run-dir", str(tmp_path / "run")],
        cwd=ROOT, capture_output=True, text=True, check=False, preexec_fn=limit,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    explained(done.stderr, f"file-unwritable at {tmp_path / 'run'}")


@pytest.mark.parametrize("which", ["best", "checkpoint"])
def test_a_pickle_in_place_of_weights_is_refused(
    which: str, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``policy.pth`` of a run that somebody sends may hold anything; nothing of it runs."""

    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return (os.mkdir, (str(tmp_path / "evil"),))

    place = tmp_path / "run"
    shutil.copytree(whole, place)
    newest = place / "checkpoints" / "step_1536"
    file = place / "best" / "model.zip" if which == "best" else newest / "rl_model.zip"
    with zipfile.ZipFile(file) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    parts["policy.pth"] = pickle.dumps(Evil(), protocol=2)
    with zipfile.ZipFile(file, "w") as new:
        for name, content in parts.items():
            new.writestr(name, content)
    if which == "best":
        assert export([str(place)]) == 2
    else:
        manifest = json.loads((newest / "checkpoint.json").read_text())
        manifest["sha256"]["rl_model.zip"] = hashlib.sha256(file.read_bytes()).hexdigest()
        (newest / "checkpoint.json").write_text(json.dumps(manifest))
        assert main(["--resume", str(place), "--steps", "3000", "--no-export"]) == 2
    place = file.relative_to(tmp_path)
    explained(capsys.readouterr().err, f"{'results' if which == 'best' else 'checkpoint'}-damaged at {place}")
    assert not (tmp_path / "evil").exists()
