"""Does a scheme share, and use, links of any rate, also when flows come and go?"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Final

import numpy as np
from typing_extensions import override

from ccgym.evaluation.weaknesses.base import Condition, Criterion, Evidence, Measure, PlannedFlow, Scenario, Weakness
from ccgym.evaluation.weaknesses.rig import BUFFERS_BDP, dumbbell, joins_at
from ccgym.evaluation.weaknesses.sample import Sample

RATES_MBPS: Final = tuple(range(10, 101, 10))
"""Rates of the sweep."""
QUICK_RATES_MBPS: Final = (10, 50, 100)
"""Those of a quick look."""
ONE_WAY_MS: Final = 20.0
"""One-way delay."""
FIRST_STOPS_S: Final = 100.0
"""When the first flow ends."""
SECOND_STARTS_S: Final = 25.0
"""When the second one joins."""
DURATION_S: Final = 150.0
"""When the second one ends."""
COMPARED_S: Final = (85.0, 100.0)
"""The last fifth of their time together, in which they are compared."""
USED_S: Final = (10.0, 150.0)
"""Over which the link's use is measured: without the first flow's start."""
FAIR: Final = 0.8
"""Least goodput ratio."""
USED: Final = 0.9
"""Least utilization."""


class BandwidthSweep(Weakness):
    """Two flows of one scheme over links of different rates."""

    name: ClassVar[str] = "bandwidth_sweep"
    title: ClassVar[str] = "Bandwidth sweep"
    question: ClassVar[str] = "Do two flows share links of any rate fairly, and fill them?"
    setting: ClassVar[str] = (
        f"10 to 100 Mbit/s, {ONE_WAY_MS:g} ms one way, buffers of 0.2, 1 and 4 BDP; flow 1 from 0 to "
        f"{FIRST_STOPS_S:g} s, flow 2 from {SECOND_STARTS_S:g} to {DURATION_S:g} s"
    )
    pass_mark: ClassVar[str] = (
        f"smaller / greater goodput from {COMPARED_S[0]:g} to {COMPARED_S[1]:g} s: mean at least {FAIR:g}; utilization "
        f"from {USED_S[0]:g} s on: mean at least {100 * USED:g} %"
    )
    brief: ClassVar[str] = "goodput ratio ≥ 0.8, utilization ≥ 90 %"
    source: ClassVar[str] = "Giacomoni and Parisis, INFOCOM 2024"
    figures: ClassVar[tuple[str | Mapping[str, Any], ...]] = ({"sweep": {"x": "rate_mbps", "columns": "buffer_bdp"}},)
    measures: ClassVar[tuple[Measure, ...]] = (
        Measure("ratio", "goodput ratio"),
        Measure("utilization", "utilization", "%"),
    )

    @override
    def conditions(self, *, quick: bool) -> list[Condition]:
        return [
            Condition(
                key=f"rate={rate}mbps,buffer={buffer:g}bdp",
                at={"rate_mbps": rate, "buffer_bdp": buffer},
                make=partial(coming_and_going, float(rate), buffer),
            )
            for buffer in BUFFERS_BDP
            for rate in (QUICK_RATES_MBPS if quick else RATES_MBPS)
        ]

    @override
    def measure(self, sample: Sample, scenario: Scenario) -> dict[str, float]:
        return {
            "ratio": sample.fairness(0, 1, *COMPARED_S),
            "utilization": sample.utilization((0, 1), *USED_S),
        }

    @override
    def criteria(self, evidence: Evidence, baseline: Evidence | None) -> list[Criterion]:
        return [
            Criterion("ratio", "", evidence.mean("ratio"), low=FAIR),
            Criterion("utilization", "", evidence.mean("utilization"), low=USED),
        ]


def coming_and_going(
    rate_mbps: float,
    buffer_bdp: float,
    rng: np.random.Generator,
    schemes: tuple[str | None, str | None] = (None, None),
) -> Scenario:
    """The scenario of the sweep over rates, with the schemes of the first and the second flow."""
    return Scenario(
        path=dumbbell(rate_mbps, ONE_WAY_MS, buffer_bdp=buffer_bdp),
        flows=(
            PlannedFlow(schemes[0], stop_ns=round(FIRST_STOPS_S * 1e9)),
            PlannedFlow(schemes[1], joins_at(SECOND_STARTS_S, rng)),
        ),
        duration_ns=round(DURATION_S * 1e9),
        rates_mbps=(rate_mbps, rate_mbps),
        one_way_ms=(ONE_WAY_MS, ONE_WAY_MS),
        times_s={"begin": COMPARED_S[0], "end": COMPARED_S[1]},
    )
