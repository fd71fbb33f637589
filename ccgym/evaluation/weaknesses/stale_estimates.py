"""Does a scheme give up what it once learned of a path, its least delay and its capacity?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    Series,
    Weakness,
    located,
)
from ccgym.evaluation.weaknesses.rig import dumbbell
from ccgym.evaluation.weaknesses.sample import Sample
from ccgym.units import PACKET_BITS

PATHS: Final = ((6.0, 10.0), (12.0, 25.0))
"""Rate (Mbit/s) and one-way delay (ms) at first."""
RTT_CHANGE_S: Final = 10.0
"""When the delay doubles."""
RATE_CHANGE_S: Final = 20.0
"""When the rate rises."""
DURATION_S: Final = 30.0
"""Length of a run."""
RTT_FACTOR: Final = 2.0
"""By how much the delay grows."""
RATE_FACTOR: Final = 8.0
"""By how much the rate grows."""
LONGEST_S: Final = 10.0
"""What stands for never: both phases last so long."""
SHARE: Final = 0.8
"""What has to be reached again, of the capacity."""
MOST_S: Final = 5.0
"""Within this time."""
WINDOW_S: Final = 0.5
"""Over so long."""
BIN_S: Final = 0.25
"""Bins of the figure."""
BUFFERS: Final = {"first": 1.0, "last": RTT_FACTOR * RATE_FACTOR}
"""Buffers: one bandwidth-delay product of the path as it is at first, or as it is at last."""


class StaleEstimates(Weakness):
    """One flow on a path whose delay doubles and whose rate then grows eightfold."""

    name: ClassVar[str] = "stale_estimates"
    title: ClassVar[str] = "Stale min RTT and BDP"
    question: ClassVar[str] = "How long does an old idea of the path's delay or capacity hold a flow back?"
    setting: ClassVar[str] = (
        f"one flow; the base RTT doubles at {RTT_CHANGE_S:g} s, the rate grows {RATE_FACTOR:g}-fold at "
        f"{RATE_CHANGE_S:g} s, from 6 Mbit/s and 20 ms or 12 Mbit/s and 50 ms; a buffer of 1 BDP of the path as it is "
        "at first, or at last"
    )
    pass_mark: ClassVar[str] = (
        f"time until {100 * SHARE:g} % of the capacity are used for {WINDOW_S:g} s: mean below {MOST_S:g} s after each "
        "change, with each buffer"
    )
    brief: ClassVar[str] = "80 % of the link within 5 s: rate ×8, RTT ×2"
    source: ClassVar[str] = "ours, after the decision tree of Muses, whose delay estimate never grows"
    figures: ClassVar[tuple[str | Mapping[str, Any], ...]] = (
        {
            "series": {
                "by": "condition",
                "threshold": SHARE,
                "events": {RTT_CHANGE_S: "RTT ×2", RATE_CHANGE_S: "rate ×8"},
            }
        },
    )
    measures: ClassVar[tuple[Measure, ...]] = (
        Measure("after_rate_s", f"time to {100 * SHARE:g} % after the rate grew", "s"),
        Measure("after_rtt_s", f"time to {100 * SHARE:g} % after the RTT grew", "s"),
    )
    series_step_ms: ClassVar[int] = 50

    @override
    def conditions(self, *, quick: bool) -> list[Condition]:
        return [
            Condition(
                key=f"rate={rate:g}mbps,owd={delay:g}ms,buffer={name}",
                at={"rate_mbps": rate, "one_way_ms": delay, "buffer": name},
                make=partial(two_changes, rate, delay, multiple),
            )
            for rate, delay in PATHS
            for name, multiple in BUFFERS.items()
        ]

    @override
    def measure(self, sample: Sample, scenario: Scenario) -> dict[str, float]:
        # What arrives in the first two round trips was sent by somebody who could not know.
        blind = 2 * 2 * scenario.one_way_ms[1] / 1e3
        after_rtt = sample.time_to(SHARE, RTT_CHANGE_S, RTT_CHANGE_S + blind, RATE_CHANGE_S, WINDOW_S)
        after_rate = sample.time_to(SHARE, RATE_CHANGE_S, RATE_CHANGE_S + blind, DURATION_S, WINDOW_S)
        return {"after_rate_s": after_rate, "after_rtt_s": after_rtt}

    @override
    def criteria(self, evidence: Evidence, baseline: Evidence | None) -> list[Criterion]:
        found = []
        for buffer in BUFFERS:
            for measure in self.measures:
                mean = evidence.mean(measure.key, located(buffer=buffer))
                group = f"buffer of the {buffer} BDP"
                found.append(Criterion(measure.key, group, mean, high=MOST_S, strict=True))
        return found

    @override
    def series(self, sample: Sample, scenario: Scenario) -> Series | None:
        return sample.rate_series(BIN_S)

    @override
    def headline(self, criteria: Sequence[Criterion]) -> str:
        found = []
        for measure in self.measures:
            times = [one.value for one in criteria if one.measure == measure.key and one.value is not None]
            if times:
                # Nobody looked any longer than the phase lasts.
                found.append(f"≥ {max(times):.0f} s" if max(times) > LONGEST_S - 0.05 else f"{max(times):.1f} s")
        return ", ".join(found)


def two_changes(rate_mbps: float, one_way_ms: float, buffer_bdp: float, rng: np.random.Generator) -> Scenario:
    """The path; its buffer counts in products of what it is at first."""
    packets = int(np.ceil(buffer_bdp * rate_mbps * 1e6 * 2 * one_way_ms / 1e3 / PACKET_BITS))
    return Scenario(
        path=dumbbell(
            [(0.0, rate_mbps), (RATE_CHANGE_S, RATE_FACTOR * rate_mbps)],
            [(0.0, one_way_ms), (RTT_CHANGE_S, RTT_FACTOR * one_way_ms)],
            buffer_packets=packets,
        ),
        flows=(PlannedFlow(),),
        duration_ns=round(DURATION_S * 1e9),
        rates_mbps=(rate_mbps, RATE_FACTOR * rate_mbps),
        one_way_ms=(one_way_ms, RTT_FACTOR * one_way_ms),
    )
