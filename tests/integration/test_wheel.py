"""The wheel in an environment of its own, in an empty folder: what README says is done there, and nothing of the
checkout is found.

The wheel is built as `make setup` builds the native module, so that nothing is compiled again. Its dependencies are
those of the environment that runs the tests.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]

SMALL = [
    "--set", "algorithm={name: ppo, n_envs: 2, n_steps: 32, batch_size: 32, net_arch: [8]}",
    "--set", "environment.episode.steps=40",
    "--set", "evaluation={episodes: 2, baselines: [oracle], figure: false}",
    "--set", "training={steps: 64, eval_every: 64, checkpoint_every: 64}",
]  # fmt: skip
"""A training of two seconds."""

QUICK = {
    "evaluate": ["--runs", "1", "--runtime", "1", "--jobs", "1", "--no-figures"],
    "train": SMALL,
    "train seeds": ["--seeds", "1", *SMALL],
    "plot portrait": ["--runtime", "2"],
    "adversary": ["--evaluations", "20", "--finds", "1", "--runs", "1", "--runtime", "2", "--confirm", "0"],
}
"""What is added to commands of the documentation so that they take seconds."""

REAL = re.compile(r"^ccgym (doctor|shell|compare backends|sender|receiver)|--backend (emulated|mahimahi)")
"""Commands for real packets: tests of their own run them, where the machine allows it."""


@dataclass(frozen=True)
class Installed:
    """An environment with nothing but the wheel and its dependencies."""

    bin: Path
    folder: Path

    def run(self, *words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL"))}
        environment["PATH"] = f"{self.bin}{os.pathsep}/usr/bin{os.pathsep}/bin"
        done = subprocess.run(
            [str(self.bin / words[0]), *words[1:]],
            cwd=self.folder, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == status, f"{shlex.join(words)}\n{done.stdout}\n{done.stderr}"
        return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "maturin", "build", "--release", "--locked", "--offline", "--compatibility", "linux"]
    done = subprocess.run([*build, "-o", str(place)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (made,) = place.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment's programs."""
    place = tmp_path_factory.mktemp("environment")
    venv.create(place, with_pip=False)
    python = place / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", "--quiet"]
    subprocess.run([*install, str(wheel)], check=True)
    (own,) = place.glob("lib/python*/site-packages")
    # The checkout is installed beside the dependencies by a .pth file, and such files count in site-packages only.
    (own / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return place / "bin"


@pytest.fixture
def installed(environment: Path, tmp_path: Path) -> Installed:
    return Installed(environment, tmp_path)


def commands_of(page: str) -> list[list[str]]:
    """The commands of a page's code blocks that call ccgym, as one types them where the wheel is installed."""
    found = []
    for line in (ROOT / page).read_text().splitlines():
        command = re.match(r"(?:    )?((?:ccgym|python evaluate\.py|python train\.py) .*)", line)
        if command is None:
            continue
        text = re.sub(r"^python (evaluate|train)\.py", r"ccgym \1", command[1])
        if not REAL.search(text):
            found.append(shlex.split(text, comments=True))
    return found


def quick(words: list[str]) -> list[str]:
    """The same command, in seconds."""
    more = [] if "--help" in words else QUICK.get(" ".join(words[1:3]), QUICK.get(words[1], []))
    if "--experiment" in words:
        more = ["--quick", "--schemes", "cubic", "--jobs", "1", "--no-figures"]
    elif words[1] == "evaluate" and "--schemes" not in words:
        more = [*more, "--schemes", "cubic,aurora"]
    return [*words, *more]


def test_the_wheel_holds_the_package_and_its_data_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"ccgym"}
    for folder in ("templates", "vendor/uplot"):
        for file in (ROOT / "ccgym" / "report" / folder).rglob("*"):
            assert file.is_dir() or str(file.relative_to(ROOT)) in names
    for folder, pattern in (("configs", "*.yaml"), ("traces", "*"), ("agents", "*.onnx")):
        for file in (ROOT / folder).rglob(pattern):
            if file.is_file():
                assert f"ccgym/_data/{file.relative_to(ROOT)}" in names
    for file in (ROOT / "schemes" / "programs").iterdir():
        assert f"ccgym/_data/programs/{file.name}" in names


def test_it_is_the_wheel_that_is_imported(installed: Installed) -> None:
    code = "import ccgym, ccgym._core as c; print(ccgym.__file__, c.__file__, ccgym.__version__)"
    package, native, version = installed.run("python", "-c", code).stdout.split()
    for file in (package, native):
        assert Path(file).is_relative_to(installed.bin.parent)
    assert version != "0+unknown"


@pytest.mark.long
def test_readme_from_top_to_bottom(installed: Installed) -> None:
    commands = commands_of("README.md")
    assert {"evaluate", "train"} <= {words[1] for words in commands}
    # What README takes for granted: the run that `make train` leaves.
    installed.run("ccgym", "train", "--config", "aurora", *SMALL)
    assert (installed.folder / "runs" / "aurora-1-1" / "export" / "aurora.onnx").is_file()
    # And the example of a scheme in Python, which a clone has.
    shutil.copytree(ROOT / "examples", installed.folder / "examples")
    for words in commands:
        installed.run(*quick(words))


@pytest.mark.parametrize("name", ["aurora.yaml", "configs/aurora.yaml", "mine.yaml"])
def test_configurations_that_come_along_are_found(name: str, installed: Installed) -> None:
    (installed.folder / "mine.yaml").write_text("extends: aurora.yaml\nname: mine\n")
    described = json.loads(installed.run("ccgym", "describe", name, "--json").stdout)
    assert described["name"] == ("mine" if name == "mine.yaml" else "aurora")
    code = f"from ccgym.training import TrainConfig; print(TrainConfig.load({name!r}).name)"
    assert installed.run("python", "-c", code).stdout.strip() == described["name"]


def test_record_and_the_report(installed: Installed) -> None:
    installed.run("ccgym", "train", "seeds", "aurora", "--seeds", "1", "--out", "mine", *SMALL)
    assert (installed.folder / "mine" / "policy.onnx").is_file()
    words = ["evaluate", "--trace", "12mbps", "--schemes", "mine,cubic", "--runs", "1", "--runtime", "1"]
    said = installed.run("python", "-m", "ccgym", *words, "--out", "out").stdout
    assert "pantheon_report.html" in said
    page = (installed.folder / "out" / "pantheon_report.html").read_text()
    assert "python -m ccgym evaluate --trace 12mbps" in page
    assert "evaluate.py" not in page


def test_environments(installed: Installed) -> None:
    code = "import ccgym, gymnasium; print(gymnasium.make('ccgym/Aurora-v0').reset(seed=1)[0].shape)"
    assert installed.run("python", "-c", code).stdout.strip() == "(30,)"


def test_nothing_names_what_is_not_there(installed: Installed) -> None:
    for command in ("evaluate", "train", "train export", "train seeds", "compare backends", "doctor"):
        said = installed.run("ccgym", *command.split(), "--help").stdout
        assert said.startswith(f"usage: ccgym {command} ")
        assert "evaluate.py" not in said
        assert "train.py" not in said
    error = installed.run("ccgym", "train", "--nope", status=2).stderr
    assert "ccgym train --help" in error
    assert "make setup" not in error
