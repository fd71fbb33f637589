"""The batch that settings ask for: simulated, or with real packets."""

from __future__ import annotations

from ccgym.envs.batch import Batch
from ccgym.envs.batch_base import EpisodeBatch
from ccgym.envs.settings import Settings


def make_batch(
    settings: Settings, count: int, threads: int = 1, *, history: bool = False, journal: bool = False
) -> EpisodeBatch:
    """Make room for ``count`` episodes.

    Args:
        settings: What they are made of, and where they run.
        count: How many run side by side.
        threads: How many threads step simulators (0: one per processor).
        history: Whether to keep what pictures are drawn from.
        journal: Whether simulated episodes can be captured; real ones cannot.
    """
    if settings.is_real:
        from ccgym.envs.real_batch import RealBatch

        return RealBatch(settings, count, history=history)
    return Batch(settings, count, threads, history=history, journal=journal)
