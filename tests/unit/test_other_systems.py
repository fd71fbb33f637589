"""What runs on macOS and Windows, as far as that shows on Linux: in a process without all that only Linux has.

Libraries are imported before, because they make up for what their system lacks. Only ccgym has to do without it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.refusals import explained

ROOT = Path(__file__).resolve().parents[2]

FOR_TRAINING = """
import onnx.checker, onnx.helper, onnxruntime, pettingzoo, sb3_contrib, sklearn.tree, stable_baselines3
import torch.utils.tensorboard
"""

OTHER_SYSTEM = """
import os, select, signal, socket, sys, types, warnings
import concurrent.futures, multiprocessing.pool, platform, shutil, sqlite3, subprocess, tempfile, urllib.request, uuid
import fpdf, google.protobuf, gymnasium.vector, matplotlib.backends.backend_agg, matplotlib.figure, pandas
import pyarrow.parquet, pydantic, rich.progress, shtab, yaml
import ccgym._core

for name in ("fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios"):
    sys.modules[name] = None
for module, names in {
    os: "environb fchmod fork geteuid getuid killpg memfd_create O_CLOEXEC O_NONBLOCK pidfd_open preadv "
        "sched_getaffinity set_blocking setsid sysconf uname",
    select: "epoll poll",
    signal: "SIGCHLD SIGHUP SIGPIPE SIGUSR1 pthread_sigmask",
    socket: "AF_UNIX",
    ccgym._core: "join_run load_run net",
}.items():
    for name in names.split():
        delattr(module, name)
warnings.filterwarnings("ignore", category=EncodingWarning)  # of libraries
warnings.filterwarnings("error", category=EncodingWarning, module=r"ccgym\\.")
sys.platform = "win32"
sys.modules["msvcrt"] = types.SimpleNamespace(LK_NBLCK=2, locking=lambda descriptor, mode, count: None)
"""

EVERY_MODULE = """
import importlib, pkgutil
import ccgym
for module in pkgutil.walk_packages(ccgym.__path__, "ccgym."):
    if module.name != "ccgym._core" and not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""

SIMULATE = """
import ccgym
run = ccgym.simulate("77.72mbps", flows=["cubic", "eagle"], duration="1s", seed=1)
assert run.flows[0].throughput_mbps > 1
"""

STEP = """
import ccgym, gymnasium
env = gymnasium.make("ccgym/Aurora-v0")
env.reset(seed=1)
assert env.step(env.action_space.sample())[0].shape == (30,)
"""

COMMAND = """
from ccgym.cli.main import main
raise SystemExit(main({words}))
"""

TRAIN = [
    "train", "--config", "aurora",
    "--set", "algorithm={name: ppo, n_envs: 2, n_steps: 32, batch_size: 32, net_arch: [8]}",
    "--set", "environment.episode.steps=40", "--set", "evaluation={episodes: 2, baselines: [oracle], figure: false}",
    "--set", "training={steps: 64, eval_every: 64, checkpoint_every: 64}",
]  # fmt: skip

EVALUATE = ["evaluate", "--trace", "12mbps", "--schemes", "cubic", "--runs", "1", "--runtime", "1", "--out", "out"]

REAL_ENVIRONMENT = """
import ccgym, gymnasium
try:
    gymnasium.make("ccgym/Aurora-v0", backend="emulated").reset(seed=1)
except ccgym.PlatformError as error:
    assert error.code == "capability-missing", error
else:
    raise AssertionError("not refused")
"""


def elsewhere(code: str, folder: Path, status: int = 0, libraries: str = "") -> str:
    """Run code where only the simulator can be; what it printed on standard error."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-X", "warn_default_encoding", "-c", libraries + OTHER_SYSTEM + code],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    return done.stderr


def test_simulation_needs_nothing_that_only_linux_has(tmp_path: Path) -> None:
    elsewhere(SIMULATE + STEP + COMMAND.format(words=EVALUATE), tmp_path)


def test_nor_does_training_nor_any_import(tmp_path: Path) -> None:
    elsewhere(EVERY_MODULE + COMMAND.format(words=TRAIN), tmp_path, libraries=FOR_TRAINING)


@pytest.mark.parametrize(
    "words",
    [
        [*EVALUATE, "--backend", "emulated"],
        [*EVALUATE, "--backend", "mahimahi"],
        ["shell", "--path", "12mbps", "--", "true"],
        ["doctor"],
    ],
    ids=" ".join,
)
def test_commands_for_real_packets_end_with_what_to_do(words: list[str], tmp_path: Path) -> None:
    explained(elsewhere(COMMAND.format(words=words), tmp_path, status=2), "capability-missing")


def test_so_do_environments(tmp_path: Path) -> None:
    elsewhere(REAL_ENVIRONMENT, tmp_path)
