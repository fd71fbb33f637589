"""Moves a curriculum on, and records where it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from ccgym.training.callbacks.base import Callback

if TYPE_CHECKING:
    from ccgym.training.trainer import Trainer


class CurriculumCallback(Callback):
    """Tells the training environments how far training is; they draw their next episodes accordingly."""

    @override
    def on_update(self, trainer: Trainer, *, last: bool) -> None:
        """Move on, if there is a curriculum."""
        levels = trainer.rollouts.curriculum_levels()
        if levels:
            trainer.rollouts.set_progress(min(1.0, trainer.step / trainer.config.training.steps))
            levels = trainer.rollouts.curriculum_levels()
        for name, value in levels.items():
            trainer.model.logger.record(f"curriculum/{name}", value)
