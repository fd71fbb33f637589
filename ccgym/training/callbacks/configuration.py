"""The configuration and the versions as text in TensorBoard, once per run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from typing_extensions import override

from ccgym.training.callbacks.base import Callback
from ccgym.training.run_directory import environment

if TYPE_CHECKING:
    from ccgym.training.trainer import Trainer


class ConfigurationCallback(Callback):
    """Writes ``config`` and ``versions``."""

    @override
    def on_start(self, trainer: Trainer) -> None:
        """Write both; TensorBoard shows text as Markdown, in which four blanks mean code."""
        if not trainer.resumed:
            trainer.events.add_text("config", _code(trainer.config.as_yaml()), 0)
            trainer.events.add_text("versions", _code(json.dumps(environment(), indent=1)), 0)


def _code(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())
