"""How much does a scheme lose alone, on a link that loses nothing itself?"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
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
    Weakness,
    located,
)
from ccgym.evaluation.weaknesses.rig import dumbbell
from ccgym.evaluation.weaknesses.sample import Sample

BUFFERS_BDP: Final = (0.1, 0.2, 0.5, 1.0)
"""Buffers, bandwidth-delay products."""
RATES_MBPS: Final = (10, 50, 100)
"""Rates of the bottleneck."""
ONE_WAY_MS: Final = (20, 50)
"""One-way delays."""
DURATION_S: Final = 40.0
"""Length of a run."""
SINCE_S: Final = 10.0
"""Losses count from here on: start-up is another matter."""
MOST: Final = 0.01
"""Greatest loss rate."""
MOST_SHALLOW: Final = 0.03
"""That of the smallest buffer."""


class SelfInflictedLoss(Weakness):
    """One flow on a lossless link with a small buffer."""

    name: ClassVar[str] = "self_inflicted_loss"
    title: ClassVar[str] = "Self-inflicted loss"
    question: ClassVar[str] = "How much of its own data does one flow drive into a full queue?"
    setting: ClassVar[str] = (
        f"one flow for {DURATION_S:g} s on lossless links of 10, 50 and 100 Mbit/s, 20 and 50 ms one way, with "
        "buffers of 0.1, 0.2, 0.5 and 1 BDP"
    )
    pass_mark: ClassVar[str] = (
        f"packets dropped / sent after {SINCE_S:g} s: mean at most {100 * MOST:g} % for each buffer, "
        f"{100 * MOST_SHALLOW:g} % at 0.1 BDP"
    )
    brief: ClassVar[str] = "loss ≤ 1 %; 0.1 BDP: ≤ 3 %"
    source: ClassVar[str] = "ours, after Giacomoni and Parisis, INFOCOM 2024"
    figures: ClassVar[tuple[str | Mapping[str, Any], ...]] = (
        {"sweep": {"x": "buffer_bdp", "columns": "rate_mbps", "even": True, "log": True}},
    )
    measures: ClassVar[tuple[Measure, ...]] = (
        Measure("loss", "loss rate", "%"),
        Measure("utilization", "utilization", "%"),
    )

    @override
    def conditions(self, *, quick: bool) -> list[Condition]:
        return [
            Condition(
                key=f"rate={rate}mbps,owd={delay}ms,buffer={buffer:g}bdp",
                at={"rate_mbps": rate, "one_way_ms": delay, "buffer_bdp": buffer},
                make=partial(alone, float(rate), float(delay), buffer),
            )
            for rate in RATES_MBPS
            for delay in (ONE_WAY_MS[:1] if quick else ONE_WAY_MS)
            for buffer in BUFFERS_BDP
        ]

    @override
    def measure(self, sample: Sample, scenario: Scenario) -> dict[str, float]:
        end = scenario.duration_s
        return {"loss": sample.drop_rate(SINCE_S, end), "utilization": sample.utilization((0,), SINCE_S, end)}

    @override
    def criteria(self, evidence: Evidence, baseline: Evidence | None) -> list[Criterion]:
        found = []
        for buffer in BUFFERS_BDP:
            mean = evidence.mean("loss", located(buffer_bdp=buffer))
            most = MOST_SHALLOW if buffer == min(BUFFERS_BDP) else MOST
            found.append(Criterion("loss", f"{buffer:g} BDP", mean, high=most, at={"buffer_bdp": buffer}))
        return found


def alone(rate_mbps: float, one_way_ms: float, buffer_bdp: float, rng: np.random.Generator) -> Scenario:
    """One flow on a lossless link."""
    return Scenario(
        path=dumbbell(rate_mbps, one_way_ms, buffer_bdp=buffer_bdp),
        flows=(PlannedFlow(),),
        duration_ns=round(DURATION_S * 1e9),
        rates_mbps=(rate_mbps, rate_mbps),
        one_way_ms=(one_way_ms, one_way_ms),
    )
