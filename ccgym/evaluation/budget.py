"""A time limit for runs. When time is up, finished runs are balanced over schemes and conditions.

A group of runs, one per scheme under the same condition, starts only if all its runs are expected to end in time.
So all schemes have equally many runs, unless a run took longer than earlier runs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Sequence
from threading import Lock

from ccgym.evaluation.run import Run


class Budget:
    """A time budget that starts with its creation. Several calls of ``measure`` may share it.

    The first group of runs starts in any case, so that every call makes progress.

    Args:
        seconds: The time budget, seconds.
        together: Returns the name of the group of a run.
        clock: Returns seconds since an arbitrary start.
    """

    def __init__(
        self, seconds: float, together: Callable[[Run], Hashable], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._together = together
        self._clock = clock
        self._deadline = clock() + seconds
        self._sizes: dict[Hashable, int] = {}
        self._begun: set[Hashable] = set()
        self._took_s: list[float] = []
        self._up = False
        self._lock = Lock()

    def plan(self, runs: Sequence[Run], took_s: Sequence[float]) -> None:
        """Announce the planned runs.

        Args:
            runs: The missing runs.
            took_s: Durations of the finished runs, seconds.
        """
        for run in runs:
            group = self._together(run)
            self._sizes[group] = self._sizes.get(group, 0) + 1
        self._took_s += took_s

    def admits(self, run: Run, jobs: int) -> bool:
        """Return whether a run may begin; call it in the order of the runs.

        Args:
            run: The run.
            jobs: Number of runs at the same time.
        """
        with self._lock:
            group = self._together(run)
            if group in self._begun:
                return True
            turns = math.ceil(self._sizes.get(group, 1) / jobs)
            needed = turns * (sum(self._took_s) / len(self._took_s) if self._took_s else 0.0)
            self._up = self._up or (bool(self._begun) and self._clock() + needed > self._deadline)
            if not self._up:
                self._begun.add(group)
            return not self._up

    def ended(self, seconds: float) -> None:
        """Record the duration of a finished run, seconds."""
        with self._lock:
            self._took_s.append(seconds)
