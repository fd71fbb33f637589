"""What is recorded of a run: its configuration once; speed, memory, curriculum, missed deadlines with every update."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from typing_extensions import override

from ccgym.training.callbacks.base import Callback
from ccgym.training.run_directory import environment

if TYPE_CHECKING:
    from ccgym.training.trainer import Trainer


class RecordsCallback(Callback):
    """Writes ``config`` and ``versions``, ``sys/…``, ``time/share_…``, ``curriculum/…`` and missed deadlines.

    It also moves the curriculum on: the training environments draw their next episodes accordingly.
    """

    def __init__(self) -> None:
        self._cpu_s = 0.0
        self._wall_s = 0.0
        self._missed = 0

    @override
    def on_start(self, trainer: Trainer) -> None:
        """Write the texts of a new run, and start the clocks."""
        if not trainer.resumed:
            trainer.events.add_text("config", _code(trainer.config.as_yaml()), 0)
            trainer.events.add_text("versions", _code(json.dumps(environment(), indent=1)), 0)
        self._cpu_s, self._wall_s = time.process_time(), time.perf_counter()

    @override
    def on_update(self, trainer: Trainer, *, last: bool) -> None:
        self._record_system(trainer)
        self._move_curriculum(trainer)
        missed = trainer.rollouts.missed_deadlines()
        if missed is not None:
            trainer.model.logger.record("environment/missed_deadlines", missed - self._missed)
            self._missed = missed

    def _record_system(self, trainer: Trainer) -> None:
        spent, logger = trainer.spent, trainer.model.logger
        logger.record("sys/steps_per_second", spent.steps / max(spent.total_s, 1e-9))
        for name, share in spent.shares().items():
            logger.record(f"time/share_{name}", share)
        cpu_s, wall_s = time.process_time(), time.perf_counter()
        logger.record("sys/cpu_percent", 100 * (cpu_s - self._cpu_s) / max(wall_s - self._wall_s, 1e-9))
        self._cpu_s, self._wall_s = cpu_s, wall_s
        memory = resident_mib()
        if memory is not None:
            logger.record("sys/rss_mib", memory)

    def _move_curriculum(self, trainer: Trainer) -> None:
        if trainer.rollouts.curriculum_levels():
            trainer.rollouts.set_progress(min(1.0, trainer.step / trainer.config.training.steps))
            for name, value in trainer.rollouts.curriculum_levels().items():
                trainer.model.logger.record(f"curriculum/{name}", value)


def resident_mib() -> float | None:
    """Memory of this process that is in use now, in MiB; None where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _code(text: str) -> str:
    """A text as code: TensorBoard shows Markdown, in which four blanks mean that."""
    return "".join(f"    {line}\n" for line in text.splitlines())
