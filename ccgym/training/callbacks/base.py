"""What a callback is."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ccgym.training.trainer import Trainer


class Callback:
    """Does something between updates. What it records with ``trainer.model.logger`` goes to CSV and TensorBoard."""

    def on_start(self, trainer: Trainer) -> None:
        """Before the first update, or the first one after a resume."""

    def on_update(self, trainer: Trainer, *, last: bool) -> None:
        """After an update, before its row is written.

        Args:
            trainer: Where everything is.
            last: Whether training has reached its end.
        """
