"""Our schemes, simulated, against the programs of the founding reports, which were recorded over the emulated path.

Paths, what is compared, and how far two rates over time are apart: tests/reproduction/genuine_programs.py. The
recording: record/record_programs.py.
"""

from __future__ import annotations

from typing import Final

import pytest

from tests.reproduction.genuine_programs import PATHS, RECORDED, distance, middle, recorded, simulated

PROGRAMS: Final = sorted(file.name.removesuffix(".csv.gz") for file in RECORDED.glob("*.csv.gz"))
BOUNDS: Final = {"throughput": 0.10, "delay": 0.15, "loss": 0.03, "rate": 0.15}
"""Of medians, relative and, of loss, absolute; and of the distance of rates over time."""

BEYOND: Final[dict[tuple[str, str], tuple[str, str]]] = {}
"""What lies beyond a bound, by program and path, and why."""


def beyond(program: str, path: str) -> list[str]:
    """The measures of a program on a path that differ by more than the bound."""
    theirs, ours = recorded(program)[path], simulated(program, path)

    def relative(name: str) -> float:
        return abs(middle(ours, name) / middle(theirs, name) - 1)

    found = {
        "throughput": relative("throughput_mbps"),
        "delay": relative("delay_p95_ms"),
        "loss": abs(middle(ours, "loss") - middle(theirs, "loss")),
        "rate": distance(theirs, ours),
    }
    return [name for name, bound in BOUNDS.items() if found[name] > bound]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_ours_does_as_the_program(program: str, path: str) -> None:
    """10 % of throughput, 15 % of p95 delay, 3 points of loss, 0.15 of the rate over time."""
    known, _ = BEYOND.get((program, path), ("", ""))
    assert beyond(program, path) == known.split()
