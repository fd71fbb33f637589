"""Does a scheme follow a path whose rate and delay change every ten seconds?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import numpy as np
from typing_extensions import override

from ccgym.evaluation.weaknesses.base import (
    Condition,
    Criterion,
    Evidence,
    Measure,
    PlannedFlow,
    Scenario,
    Series,
    Weakness,
)
from ccgym.evaluation.weaknesses.rig import dumbbell
from ccgym.evaluation.weaknesses.sample import Sample

DURATION_S: Final = 300.0
"""Length of a run."""
EVERY_S: Final = 10.0
"""Time between changes."""
RATES_MBPS: Final = (1, 100)
"""Rates are drawn evenly from the whole Mbit/s between."""
RTTS_MS: Final = (20, 200)
"""Round-trip times are drawn evenly from the whole ms between."""
BUFFER_PACKETS: Final = 84
"""One bandwidth-delay product of 10 Mbit/s and 100 ms, rounded up."""
SEEDS_PER_RUN: Final = 10
"""Paths per repetition asked for: 50 for five."""
QUICK_SEEDS_PER_RUN: Final = 5
"""Paths of a quick look."""
BIN_S: Final = 1.0
"""Bins of the figure."""


class Responsiveness(Weakness):
    """One flow over a changing path, compared with Cubic over the same."""

    name: ClassVar[str] = "responsiveness"
    title: ClassVar[str] = "Responsiveness"
    question: ClassVar[str] = "Does it use a changing path as well as Cubic, with no longer queue?"
    setting: ClassVar[str] = (
        f"{DURATION_S:g} s in which every {EVERY_S:g} s a new rate (1 to 100 Mbit/s) and round-trip time (20 to "
        f"200 ms) are drawn; a buffer of {BUFFER_PACKETS} packets, 1 BDP of 10 Mbit/s and 100 ms"
    )
    pass_mark: ClassVar[str] = (
        "mean utilization at least Cubic's, mean queueing delay at most Cubic's, on the same paths"
    )
    brief: ClassVar[str] = "utilization ≥ Cubic's, queue ≤ Cubic's"
    source: ClassVar[str] = "Giacomoni and Parisis, INFOCOM 2024"
    figures: ClassVar[tuple[str | Mapping[str, Any], ...]] = ("series", "scatter")
    measures: ClassVar[tuple[Measure, ...]] = (
        Measure("utilization", "utilization", "%"),
        Measure("queue_delay_ms", "queueing delay", "ms"),
    )
    baseline: ClassVar[str | None] = "cubic"

    @override
    def conditions(self, *, quick: bool) -> list[Condition]:
        seeds = QUICK_SEEDS_PER_RUN if quick else SEEDS_PER_RUN
        return [Condition(key="drawn", at={"path": "drawn"}, make=changing, repeat=seeds)]

    @override
    def measure(self, sample: Sample, scenario: Scenario) -> dict[str, float]:
        return {
            "utilization": sample.utilization((0,), 0.0, scenario.duration_s),
            "queue_delay_ms": sample.queue_delay_ms,
        }

    @override
    def criteria(self, evidence: Evidence, baseline: Evidence | None) -> list[Criterion]:
        # Without the other's number there is nothing to compare with: then the criterion is open, not met.
        theirs = {measure.key: None if baseline is None else baseline.mean(measure.key) for measure in self.measures}
        used, queued = theirs["utilization"], theirs["queue_delay_ms"]
        return [
            Criterion("utilization", "", None if used is None else evidence.mean("utilization"), low=used),
            Criterion("queue_delay_ms", "", None if queued is None else evidence.mean("queue_delay_ms"), high=queued),
        ]

    @override
    def series(self, sample: Sample, scenario: Scenario) -> Series | None:
        return sample.rate_series(BIN_S)


def changing(rng: np.random.Generator) -> Scenario:
    """A path drawn."""
    starts = np.arange(0.0, DURATION_S, EVERY_S)
    rates = rng.integers(RATES_MBPS[0], RATES_MBPS[1], size=starts.size, endpoint=True)
    rtts = rng.integers(RTTS_MS[0], RTTS_MS[1], size=starts.size, endpoint=True)
    return Scenario(
        path=dumbbell(
            [(float(at), float(rate)) for at, rate in zip(starts, rates, strict=True)],
            [(float(at), float(rtt) / 2) for at, rtt in zip(starts, rtts, strict=True)],
            buffer_packets=BUFFER_PACKETS,
            phase=False,
        ),
        flows=(PlannedFlow(),),
        duration_ns=round(DURATION_S * 1e9),
        rates_mbps=(float(RATES_MBPS[0]), float(RATES_MBPS[1])),
        one_way_ms=(RTTS_MS[0] / 2, RTTS_MS[1] / 2),
    )
