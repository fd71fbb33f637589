"""How much of the processors' time others took away: what tells a failure of a busy machine from one of ours.

A virtual machine may lose its processors for tens of milliseconds, and no real path keeps a schedule then.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

STOLEN: Final = 0.01
"""Share of the processors' time from which on a failure may be the machine's; where nothing else runs it is 0."""


def processor_times() -> tuple[int, int]:
    """Time so far of all processors, and how much of it was stolen, in ticks; zeros where that is not known."""
    try:
        words = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
        return sum(map(int, words[:8])), int(words[7])
    except (OSError, ValueError, IndexError):
        return 0, 0


def stolen_share(before: tuple[int, int], after: tuple[int, int]) -> float:
    """Part of the time between two readings that was stolen."""
    elapsed = after[0] - before[0]
    return (after[1] - before[1]) / elapsed if elapsed > 0 else 0.0
