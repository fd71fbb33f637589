"""Measure stolen processor time, which distinguishes failures of a busy machine from failures of ccgym.

A virtual machine may lose its processors for tens of milliseconds, and then no real path can hold its schedule.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

STOLEN: Final = 0.01
"""Minimum stolen share for a failure to be the machine's; without other load, the share is 0."""


def processor_times() -> tuple[int, int]:
    """Return the total time of all processors, and the stolen part, in ticks; zeros if unknown."""
    try:
        words = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
        return sum(map(int, words[:8])), int(words[7])
    except (OSError, ValueError, IndexError):
        return 0, 0


def stolen_share(before: tuple[int, int], after: tuple[int, int]) -> float:
    """Return the stolen share of the time between two readings."""
    elapsed = after[0] - before[0]
    return (after[1] - before[1]) / elapsed if elapsed > 0 else 0.0
