"""Does a flow get going again when no acknowledgement comes for a second during its start?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import numpy as np
from typing_extensions import override

from ccgym.evaluation.weaknesses.base import Condition, Criterion, Evidence, Measure, PlannedFlow, Scenario, Weakness
from ccgym.evaluation.weaknesses.rig import dumbbell
from ccgym.evaluation.weaknesses.sample import Sample

DURATION_S: Final = 30.0
"""Length of a run."""
SILENT_S: Final = (1.0, 2.0)
"""No acknowledgement arrives that sets out in between."""
REPORTED: Final = (77.72, 51.0, 94)
"""Rate (Mbit/s), one-way delay (ms) and buffer (packets) of the path on which such a run was reported. Its random loss
is left out: that alone keeps schemes that heed every loss below the mark, whatever their start was like."""
START_SPREAD_S: Final = 0.1
"""Flows start up to so much later: the silence finds them at different points."""
RATES_MBPS: Final = (5.0, 100.0)
"""Drawn paths: rates, evenly in the logarithm."""
ONE_WAY_MS: Final = (10.0, 100.0)
"""Drawn paths: one-way delays, evenly."""
SEEDS_PER_RUN: Final = 10
"""Seeds per repetition asked for: 50 for five."""
COLLAPSED: Final = 0.2
"""A run with less utilization counts as collapsed."""


class StartupRecovery(Weakness):
    """One flow whose acknowledgements are killed during its start."""

    name: ClassVar[str] = "startup_recovery"
    title: ClassVar[str] = "Start-up recovery"
    question: ClassVar[str] = "Does a run collapse when a second's acknowledgements are lost during the start?"
    setting: ClassVar[str] = (
        f"one flow for {DURATION_S:g} s; acknowledgements are killed from {SILENT_S[0]:g} to {SILENT_S[1]:g} s; on a "
        f"path of {REPORTED[0]:g} Mbit/s, {REPORTED[1]:g} ms one way and {REPORTED[2]} packets of buffer, and on drawn "
        "ones (5 to 100 Mbit/s, 10 to 100 ms one way, 1 BDP)"
    )
    pass_mark: ClassVar[str] = f"no run with less than {100 * COLLAPSED:g} % utilization"
    brief: ClassVar[str] = "no run below 20 %"
    source: ClassVar[str] = "ours, after a run of Eagle that a report shows collapsed"
    figures: ClassVar[tuple[str | Mapping[str, Any], ...]] = ({"strip": {"metric": "utilization", "min": COLLAPSED}},)
    measures: ClassVar[tuple[Measure, ...]] = (
        Measure("collapsed", "collapsed runs", "%"),
        Measure("utilization", "utilization", "%"),
    )

    @override
    def conditions(self, *, quick: bool) -> list[Condition]:
        return [
            Condition(key=name, at={"path": name}, make=make, repeat=SEEDS_PER_RUN)
            for name, make in (("reported", reported), ("drawn", drawn))
        ]

    @override
    def measure(self, sample: Sample, scenario: Scenario) -> dict[str, float]:
        used = sample.utilization((0,), 0.0, scenario.duration_s)
        return {"collapsed": float(used < COLLAPSED), "utilization": used}

    @override
    def criteria(self, evidence: Evidence, baseline: Evidence | None) -> list[Criterion]:
        return [Criterion("collapsed", "", evidence.mean("collapsed"), high=0.0)]


def reported(rng: np.random.Generator) -> Scenario:
    """The path of the report."""
    rate, delay, packets = REPORTED
    return _scenario(rate, delay, packets, rng, (rate, rate), (delay, delay))


def drawn(rng: np.random.Generator) -> Scenario:
    """A path drawn; inside a range of training if all that could be drawn is."""
    low, high = np.log(RATES_MBPS)
    rate, delay = float(np.exp(rng.uniform(low, high))), float(rng.uniform(*ONE_WAY_MS))
    return _scenario(rate, delay, None, rng, RATES_MBPS, ONE_WAY_MS)


def _scenario(
    rate_mbps: float,
    one_way_ms: float,
    packets: int | None,
    rng: np.random.Generator,
    rates_mbps: tuple[float, float],
    delays_ms: tuple[float, float],
) -> Scenario:
    silence = [(0.0, 0.0), (SILENT_S[0], 1.0), (SILENT_S[1], 0.0)]
    return Scenario(
        path=dumbbell(rate_mbps, one_way_ms, buffer_bdp=1.0, buffer_packets=packets, ack_loss=silence),
        flows=(PlannedFlow(start_ns=round(START_SPREAD_S * float(rng.random()) * 1e9)),),
        duration_ns=round(DURATION_S * 1e9),
        rates_mbps=rates_mbps,
        one_way_ms=delays_ms,
    )
