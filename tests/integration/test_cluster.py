"""Runs on a Ray cluster: equal to local ones by hash, also where a worker and the driver are killed."""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ccgym.config.path import NetworkPath
from ccgym.errors import ConfigError
from ccgym.evaluation.cluster import Cluster, _batch_size, _worker
from ccgym.evaluation.engine import Reduction, measure
from ccgym.evaluation.prepared_run import Record
from ccgym.evaluation.run import Run, contender
from ccgym.evaluation.run_bundle import code, difference, make_runs, packed
from ccgym.evaluation.store import read_run
from tests.integration.tiny_agent import TINY
from tests.refusals import refused

pytestmark = pytest.mark.long

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="needs ray: pip install 'ccgym[ray]', as in docs/guides/cluster.md"
)


def kept(out: Path) -> dict[str, tuple[Any, ...]]:
    """What is kept of each run, but for times, by file."""
    runs = {file.name: read_run(file) for file in (out / "runs").iterdir()}
    return {name: (one.trajectory_hash, one.data, one.arrays_sha256) for name, one in runs.items()}


# --- What travels ----------------------------------------------------------------------------------------------------


def numbers(run: Run, record: Any) -> Any:
    return {"mbps": record.flows[0].throughput_mbps}


def test_a_process_that_has_none_of_the_files_comes_to_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other process runs in an empty directory, after the files here are gone."""
    monkeypatch.chdir(tmp_path)
    examples = Path(__file__).parents[2] / "examples"
    agents = Path(__file__).parents[2] / "agents" / "aurora"
    Path("mine.py").write_text((examples / "aimd.py").read_text())
    Path("mine.trace").write_text("".join(f"{ms}\n" for ms in range(1, 2001)))
    for name in ("policy.onnx", "card.json"):
        Path(name).write_bytes((agents / name).read_bytes())
    path = NetworkPath(trace="mine.trace", rtt="20ms", queue="20p", name="mine")
    runs = [
        Run(path, contender(text), 10**9, 1, Record(series=0), name=text)
        for text in ("cubic", "mine.py:AIMD", "./policy.onnx")
    ]
    here = [one.stored.trajectory_hash for one in measure(runs, reduce=Reduction("n", 1, numbers)) if one.stored]
    mbps = lambda run, record: record.flows[0].throughput_mbps  # noqa: E731 - code of ours that travels, too
    content = packed(runs, Reduction("n", 1, mbps))
    sent = pickle.dumps([(run, 0.0) for run in runs])
    Path("content").write_bytes(content)
    Path("sent").write_bytes(sent)
    empty = tmp_path / "empty"
    empty.mkdir()
    for name in ("mine.py", "mine.trace", "policy.onnx", "card.json"):
        Path(name).unlink()
    there = (
        "import sys, json; from pathlib import Path; from ccgym.evaluation.run_bundle import make_runs\n"
        "made = make_runs(Path('../content').read_bytes(), Path('../sent').read_bytes())\n"
        "print(json.dumps([one if isinstance(one, str) else one.stored.trajectory_hash for one in made]))"
    )
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", there],
        cwd=empty,
        env={**os.environ, "PYTHONPATH": root, "CCGYM_CACHE_DIR": str(empty)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert json.loads(done.stdout) == here
    assert len(set(here)) == 3


def test_a_run_that_reads_differently_elsewhere_is_not_made() -> None:
    run = Run(NetworkPath(rate="12mbps", rtt="20ms", queue="20p"), contender("cubic"), 10**9, 1, Record(series=0))
    content = packed([run], Reduction("n", 1, numbers))
    wrong = replace(run)
    object.__setattr__(wrong, "digest", "0" * 64)
    (text,) = make_runs(content, pickle.dumps([(wrong, 0.0)]))
    assert "another digest of this run" in text


def test_another_version_of_ccgym_is_refused() -> None:
    assert difference(code()) is None
    assert f"has ccgym {code()}" in (difference("0.0.0 (0123456789ab)") or "")
    assert "<locals>" in _worker().__qualname__, "it must travel as code: else a worker without ccgym cannot answer"


def test_real_packets_are_refused() -> None:
    run = Run(NetworkPath(rate="12mbps", rtt="20ms"), contender("cubic"), 10**9, 1, backend="emulated")
    with refused(ConfigError, "backend-unsuitable at --cluster"):
        Cluster().require([run])


def test_batches_are_as_long_as_runs_are_short() -> None:
    assert _batch_size(None, 1000, 2) == 1
    assert _batch_size(0.02, 10_000, 2) == 50
    assert _batch_size(30.0, 10_000, 2) == 1
    assert _batch_size(0.02, 40, 2) == 10, "towards the end they are smaller"


@needs_ray
def test_a_cluster_that_is_gone_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    from ray._private import services

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    said: list[str] = []
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{bound.getsockname()[1]}"
        monkeypatch.setattr(services, "find_gcs_addresses", set)
        monkeypatch.setattr(services, "find_bootstrap_address", lambda temp_dir: address)
        assert Cluster(notice=said.append)._known() is None, "bound, but nothing listens"
        assert len(said) == 1
        assert address in said[0]
        bound.listen()
        assert Cluster(notice=said.append)._known() == address
    monkeypatch.setattr(services, "find_bootstrap_address", lambda temp_dir: None)
    assert Cluster(notice=said.append)._known() is None, "there never was one"
    assert Cluster("10.0.0.1:6379")._known() == "10.0.0.1:6379"
    assert len(said) == 1


# --- A cluster of several processes ---------------------------------------------------------------------------------


def descendants(root: int) -> dict[int, str]:
    """Processes below one, with their titles."""
    parents, titles = {}, {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(place.name)] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            titles[int(place.name)] = (place / "cmdline").read_text().replace("\0", " ")
        except (OSError, ValueError):
            continue
    found, grown = {root}, True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        found, grown = found | more, bool(more)
    return {pid: titles[pid] for pid in found if pid in titles}


@pytest.fixture(scope="module")
def ray_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int, dict[str, str]]]:
    """Address, process and environment of a cluster with two processors, which only this test can talk to."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_worker_niceness": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    log = tmp_path_factory.mktemp("ray") / "log"
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--num-cpus=2"]
    command += ["--node-ip-address=127.0.0.1", f"--port={port}", "--include-dashboard=false"]
    with log.open("w") as out:
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=out)
    try:
        give_up = time.monotonic() + 120
        while "runtime started" not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < give_up, log.read_text()
            time.sleep(0.2)
        yield f"127.0.0.1:{port}", process.pid, environment
    finally:
        own = descendants(process.pid)
        process.terminate()
        for pid in own:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        process.wait()


@needs_ray
def test_killed_workers_and_drivers_change_nothing_but_time(
    ray_cluster: tuple[str, int, dict[str, str]], tmp_path: Path
) -> None:
    address, head, environment = ray_cluster
    example = Path(__file__).parents[2] / "examples" / "aimd.py"
    command = [sys.executable, "-m", "ccgym", "evaluate", "--trace", "100.42mbps", "--sweep", "rtt=20ms,40ms"]
    command += ["--schemes", f"cubic,aurora,{example}:AIMD", "--runs", "4", "--runtime", "20", "--no-figures"]
    here, there = tmp_path / "here", tmp_path / "there"
    subprocess.run([*command, "--out", str(here)], check=True, capture_output=True, timeout=240)

    on_cluster = [*command, "--cluster", address, "--out", str(there)]
    log = tmp_path / "log"
    with log.open("w") as out:
        driver = subprocess.Popen(on_cluster, env=environment, stdout=out, stderr=out)
    give_up = time.monotonic() + 200

    def ended() -> int:
        return len(list((there / "runs").glob("[!.]*")))

    try:
        killed = 0
        while not killed:
            assert driver.poll() is None, log.read_text()
            assert time.monotonic() < give_up, log.read_text()
            workers = [pid for pid, title in descendants(head).items() if title.startswith("ray::work")]
            if ended() and workers:
                killed = workers[0]
                os.kill(killed, signal.SIGKILL)
            time.sleep(0.05)
        while "lost its worker" not in log.read_text():
            assert driver.poll() is None, log.read_text()
            assert time.monotonic() < give_up, log.read_text()
            time.sleep(0.05)
    finally:
        driver.kill()
        driver.wait()
    before = ended()
    assert 0 < before < 24
    watched = subprocess.run(
        [sys.executable, "-m", "ccgym", "report", "watch", str(there), "--once"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert watched.returncode == 1
    assert "interrupted" in watched.stdout

    again = subprocess.run(on_cluster, env=environment, capture_output=True, text=True, timeout=240)
    assert again.returncode == 0, again.stderr
    assert f"{before} were there already" in again.stdout
    assert kept(there) == kept(here)
    assert len(kept(there)) == 24
    assert not list(there.rglob("*.partial"))


SHORT = """\
algorithm: {n_envs: 4, n_steps: 24, batch_size: 32, net_arch: [8]}
training: {steps: 384, eval_every: 192, checkpoint_every: 96}
evaluation: {episodes: 1, baselines: [oracle]}
"""


@needs_ray
def test_trainings_on_a_cluster_come_to_the_same_weights(
    ray_cluster: tuple[str, int, dict[str, str]], tmp_path: Path
) -> None:
    """Ray Tune over ``train.py``: a seed alone, and the same among others on a cluster."""
    pytest.importorskip("torch", reason="needs torch")
    address, _, environment = ray_cluster
    (tmp_path / "tiny.yaml").write_text(TINY + SHORT)
    train = [sys.executable, "-m", "ccgym", "train", "--config", "tiny.yaml", "--device", "cpu"]
    alone = [*train, "--seed", "2", "--run-dir", "alone", "--no-export"]
    subprocess.run(alone, cwd=tmp_path, env=environment, check=True, capture_output=True, timeout=240)
    many = [*train, "--cluster", address, "--seeds", "1,2"]
    for _ in "12":  # the second time nothing is left to do
        done = subprocess.run(many, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=400)
        assert done.returncode == 0, done.stdout + done.stderr
    weights = [
        json.loads((tmp_path / place / "final" / "model.json").read_text())["weights_sha256"]
        for place in ("alone", "runs/tiny-1", "runs/tiny-2")
    ]
    assert weights[0] == weights[2] != weights[1]
    assert all(one[:16] in done.stdout for one in weights[1:])
