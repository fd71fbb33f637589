"""The ids of the environments, and their registration in Gymnasium.

``import ccgym`` is enough, before or after ``import gymnasium``. Gymnasium 1.x does not read entry points of installed
packages, and ``import ccgym`` does not load Gymnasium (a quarter of a second). So the ids are registered at once if
Gymnasium is loaded, else when it is imported. In a process that does not import ccgym, such as a spawned worker, write
``gymnasium.make("ccgym:ccgym/Aurora-v0")``.

A preset is one line in :data:`PRESETS`: an id and a configuration file of ``configs/``. The sections ``agent`` and
``environment`` of this file are the defaults of the environment.

This module imports only the standard library until Gymnasium is loaded.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from importlib.abc import MetaPathFinder
else:
    MetaPathFinder = object  # the import system only calls methods; importing importlib.abc takes 10 ms

PRESETS: Final = {
    "ccgym/Link-v0": "link",
    "ccgym/Aurora-v0": "aurora",
}
"""Environment ids, and the configurations with their defaults."""

_ENVIRONMENT: Final = "ccgym.envs.link_env:LinkEnv"
_VECTOR: Final = "ccgym.envs.vector_env:VectorLinkEnv"
_GYMNASIUM: Final = "gymnasium.envs"


def register_environments() -> None:
    """Register the ids of :data:`PRESETS` in Gymnasium; ids that are registered already stay unchanged."""
    from gymnasium.envs.registration import register, registry

    for name, config in PRESETS.items():
        if name not in registry:
            # The environment itself checks limits, actions and call order; Gymnasium's wrappers would repeat that.
            register(
                id=name, entry_point=_ENVIRONMENT, vector_entry_point=_VECTOR, kwargs={"config": config},
                order_enforce=False, disable_env_checker=True,
            )  # fmt: skip


def register_with_gymnasium() -> None:
    """Register the ids now if Gymnasium is loaded, else when it is imported."""
    if _GYMNASIUM in sys.modules:
        register_environments()
    elif not any(isinstance(finder, _Watch) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Watch())


class _Watch(MetaPathFinder):
    """Detects the import of Gymnasium's environments, then removes itself from ``sys.meta_path``."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _GYMNASIUM:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def then_register(module: ModuleType) -> None:
                execute(module)
                register_environments()

            spec.loader.exec_module = then_register  # type: ignore[method-assign]
        return spec
