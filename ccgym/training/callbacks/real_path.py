"""How well decisions keep up with real paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from ccgym.training.callbacks.base import Callback

if TYPE_CHECKING:
    from ccgym.training.trainer import Trainer


class RealPathCallback(Callback):
    """Records the deadlines that were missed since the update before, those during learning included."""

    def __init__(self) -> None:
        self._before = 0

    @override
    def on_update(self, trainer: Trainer, *, last: bool) -> None:
        """Record, if the packets are real."""
        missed = trainer.rollouts.missed_deadlines()
        if missed is not None:
            trainer.model.logger.record("environment/missed_deadlines", missed - self._before)
            self._before = missed
