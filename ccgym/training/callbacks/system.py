"""How fast training is, where the time goes, and what it takes of the machine."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from typing_extensions import override

from ccgym.training.callbacks.base import Callback

if TYPE_CHECKING:
    from ccgym.training.trainer import Trainer


class SystemCallback(Callback):
    """Records ``sys/…`` and ``time/share_…`` once per update."""

    def __init__(self) -> None:
        self._cpu_s = 0.0
        self._wall_s = 0.0

    @override
    def on_start(self, trainer: Trainer) -> None:
        """Start the clocks."""
        self._cpu_s, self._wall_s = time.process_time(), time.perf_counter()

    @override
    def on_update(self, trainer: Trainer, *, last: bool) -> None:
        """Record the update that was just done."""
        spent = trainer.spent
        logger = trainer.model.logger
        logger.record("sys/steps_per_second", spent.steps / max(spent.total_s, 1e-9))
        for name, share in spent.shares().items():
            logger.record(f"time/share_{name}", share)
        cpu_s, wall_s = time.process_time(), time.perf_counter()
        logger.record("sys/cpu_percent", 100 * (cpu_s - self._cpu_s) / max(wall_s - self._wall_s, 1e-9))
        self._cpu_s, self._wall_s = cpu_s, wall_s
        memory = resident_mib()
        if memory is not None:
            logger.record("sys/rss_mib", memory)


def resident_mib() -> float | None:
    """Memory of this process that is in use now, in MiB; None where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
