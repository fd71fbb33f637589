"""How Gymnasium comes to know the environments, in fresh interpreters."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LIST = "print(sorted(k for k in gymnasium.registry if k.startswith('ccgym/')))"


def fresh(code: str, folder: Path, checkout: Path) -> str:
    """What a fresh interpreter prints that knows ccgym only from PYTHONPATH and stands elsewhere."""
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    "imports",
    [
        "import ccgym, gymnasium",
        "import gymnasium, ccgym",
        "import ccgym\nfrom gymnasium.wrappers import TimeLimit\nimport gymnasium",
        "import gymnasium.envs.registration\nimport ccgym",
        "import ccgym, importlib\ngymnasium = importlib.import_module('gymnasium')\nimportlib.reload(ccgym)",
    ],
)
def test_both_orders_of_import_register(imports: str, tmp_path: Path, checkout: Path) -> None:
    ids = fresh(f"{imports}\n{LIST}", tmp_path, checkout)
    assert "'ccgym/Link-v0'" in ids
    assert "'ccgym/Aurora-v0'" in ids


def test_the_watch_leaves_no_trace(tmp_path: Path, checkout: Path) -> None:
    code = (
        "import sys, ccgym\nbefore = len(sys.meta_path)\nimport gymnasium, importlib.machinery\n"
        "print(len(sys.meta_path) - before, type(gymnasium.envs.__loader__).__name__,"
        " type(gymnasium.envs.__spec__.loader).__name__)"
    )
    assert fresh(code, tmp_path, checkout) == "-1 SourceFileLoader SourceFileLoader"


def test_importing_ccgym_loads_no_gymnasium(tmp_path: Path, checkout: Path) -> None:
    code = (
        "import ccgym, ccgym.envs, sys\n"
        "print([m for m in ('gymnasium', 'numpy', 'pydantic', 'torch', 'matplotlib') if m in sys.modules])"
    )
    assert fresh(code, tmp_path, checkout) == "[]"


def test_environments_load_neither_torch_nor_matplotlib(tmp_path: Path, checkout: Path) -> None:
    code = (
        "import gymnasium, sys\ngymnasium.make('ccgym:ccgym/Aurora-v0').reset(seed=1)\n"
        "gymnasium.make_vec('ccgym/Link-v0', num_envs=2).reset(seed=1)\n"
        "print([m for m in ('torch', 'stable_baselines3', 'pettingzoo', 'matplotlib') if m in sys.modules])"
    )
    assert fresh(code, tmp_path, checkout) == "[]"


def test_a_preset_is_one_line() -> None:
    from ccgym.config.configurations import packaged_config
    from ccgym.envs.registration import PRESETS

    assert all(packaged_config(config) for config in PRESETS.values())


def test_the_installed_package_brings_the_configurations(checkout: Path) -> None:
    assert (checkout / "ccgym" / "_data" / "configs").resolve() == checkout / "configs"
    assert '"ccgym/_data/configs/*.yaml"' in (checkout / "pyproject.toml").read_text(encoding="utf-8")
