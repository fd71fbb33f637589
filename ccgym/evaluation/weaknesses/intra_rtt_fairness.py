"""Do two flows of a scheme share a link when their round-trip times are the same?"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Final

import numpy as np
from typing_extensions import override

from ccgym.evaluation.weaknesses.base import Condition, Criterion, Evidence, Measure, PlannedFlow, Scenario, Weakness
from ccgym.evaluation.weaknesses.rig import BUFFERS_BDP, dumbbell, joins_at
from ccgym.evaluation.weaknesses.sample import Sample

RATE_MBPS: Final = 100.0
"""Rate of the bottleneck."""
ONE_WAY_MS: Final = tuple(range(10, 101, 10))
"""One-way delays of the sweep."""
QUICK_ONE_WAY_MS: Final = (10, 50, 100)
"""Those of a quick look."""
LENGTH_RTTS: Final = 2000
"""Base round trips that the first flow runs."""
JOIN_RTTS: Final = 500
"""Base round trips after which the second one joins."""
LAST_SHARE: Final = 0.2
"""Last part of the run, in which the flows are compared."""
INSIDE: Final = 0.8
"""Least ratio within the range of training, and of schemes that were not trained."""
OUTSIDE: Final = 0.5
"""Least ratio outside of it."""


class IntraRttFairness(Weakness):
    """Two flows of one scheme and one round-trip time."""

    name: ClassVar[str] = "intra_rtt_fairness"
    title: ClassVar[str] = "Fairness at equal RTT"
    question: ClassVar[str] = "Does a second flow of the same scheme and round-trip time get its share?"
    setting: ClassVar[str] = (
        f"{RATE_MBPS:g} Mbit/s, one-way delays of 10 to 100 ms, buffers of 0.2, 1 and 4 BDP; flow 1 runs "
        f"{LENGTH_RTTS} base RTTs, flow 2 joins after {JOIN_RTTS} and both end together"
    )
    pass_mark: ClassVar[str] = (
        f"smaller / greater goodput over the last {100 * LAST_SHARE:g} % of the run: mean at least {INSIDE:g} within "
        f"the range of training, {OUTSIDE:g} outside of it"
    )
    brief: ClassVar[str] = "goodput ratio ≥ 0.8; outside the training range ≥ 0.5"
    source: ClassVar[str] = "Giacomoni and Parisis, INFOCOM 2024"
    figures: ClassVar[tuple[str | Mapping[str, Any], ...]] = ({"sweep": {"x": "one_way_ms", "columns": "buffer_bdp"}},)
    measures: ClassVar[tuple[Measure, ...]] = (
        Measure("ratio", "goodput ratio"),
        Measure("utilization", "utilization", "%"),
    )
    series_step_ms: ClassVar[int] = 200

    @override
    def conditions(self, *, quick: bool) -> list[Condition]:
        return [
            Condition(
                key=f"owd={delay}ms,buffer={buffer:g}bdp",
                at={"one_way_ms": delay, "buffer_bdp": buffer},
                make=partial(two_flows, RATE_MBPS, float(delay), buffer),
            )
            for buffer in BUFFERS_BDP
            for delay in (QUICK_ONE_WAY_MS if quick else ONE_WAY_MS)
        ]

    @override
    def measure(self, sample: Sample, scenario: Scenario) -> dict[str, float]:
        begin, end = scenario.times_s["begin"], scenario.times_s["end"]
        return {
            "ratio": sample.fairness(0, 1, begin, end),
            "utilization": sample.utilization((0, 1), begin, end),
        }

    @override
    def criteria(self, evidence: Evidence, baseline: Evidence | None) -> list[Criterion]:
        found = []
        if any(where is not False for where in evidence.inside.values()):
            within = evidence.mean("ratio", lambda one: evidence.inside[one.key] is not False)
            trained = any(where for where in evidence.inside.values())
            found.append(Criterion("ratio", "inside the training range" if trained else "", within, low=INSIDE))
        if any(where is False for where in evidence.inside.values()):
            beyond = evidence.mean("ratio", lambda one: evidence.inside[one.key] is False)
            found.append(Criterion("ratio", "outside the training range", beyond, low=OUTSIDE))
        return found


def two_flows(
    rate_mbps: float,
    one_way_ms: float,
    buffer_bdp: float,
    rng: np.random.Generator,
    schemes: tuple[str | None, str | None] = (None, None),
) -> Scenario:
    """The scenario of the sweep over delays, with the schemes of the first and the second flow."""
    rtt_s = 2 * one_way_ms / 1e3
    duration_s = LENGTH_RTTS * rtt_s
    return Scenario(
        path=dumbbell(rate_mbps, one_way_ms, buffer_bdp=buffer_bdp),
        flows=(PlannedFlow(schemes[0]), PlannedFlow(schemes[1], joins_at(JOIN_RTTS * rtt_s, rng))),
        duration_ns=round(duration_s * 1e9),
        rates_mbps=(rate_mbps, rate_mbps),
        one_way_ms=(one_way_ms, one_way_ms),
        times_s={"begin": (1 - LAST_SHARE) * duration_s, "end": duration_s},
    )
