"""Does a scheme live beside one flow of Cubic, taking no more and no less than is decent?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final

from typing_extensions import override

from ccgym.evaluation.weaknesses import bandwidth_sweep, intra_rtt_fairness
from ccgym.evaluation.weaknesses.base import Condition, Criterion, Evidence, Measure, Scenario, Weakness, located
from ccgym.evaluation.weaknesses.rig import BUFFERS_BDP
from ccgym.evaluation.weaknesses.sample import Sample

CUBIC: Final = "cubic"
"""The competitor."""
SHARE: Final = (0.3, 0.7)
"""What Cubic may get of the link."""
ORDERS: Final = {"first": (CUBIC, None), "second": (None, CUBIC)}
"""Whether Cubic is the flow that is there or the one that joins."""


class CubicFriendliness(Weakness):
    """One flow of the scheme, one of Cubic, both orders, over both sweeps."""

    name: ClassVar[str] = "cubic_friendliness"
    title: ClassVar[str] = "Cubic-friendliness"
    question: ClassVar[str] = "What is left of the link for a flow of Cubic, and for the scheme beside it?"
    setting: ClassVar[str] = (
        "one flow of the scheme and one of Cubic, which comes first or second, on the paths of the tests of fairness "
        "at equal RTT and of the bandwidth sweep"
    )
    pass_mark: ClassVar[str] = (
        f"Cubic's share of the link: mean from {SHARE[0]:g} to {SHARE[1]:g} for each buffer and each order"
    )
    brief: ClassVar[str] = "Cubic's share 0.3 to 0.7"
    source: ClassVar[str] = "Giacomoni and Parisis, INFOCOM 2024; Mazilu et al., arXiv 2510.25105"
    figures: ClassVar[tuple[str | Mapping[str, Any], ...]] = (
        {
            "sweep": {
                "columns": "buffer_bdp",
                "lines": "cubic",
                "rows": [
                    {"x": "one_way_ms", "where": {"sweep": "delay"}},
                    {"x": "rate_mbps", "where": {"sweep": "rate"}},
                ],
            }
        },
    )
    measures: ClassVar[tuple[Measure, ...]] = (
        Measure("cubic_share", "Cubic's share"),
        Measure("utilization", "utilization", "%"),
    )
    series_step_ms: ClassVar[int] = 200

    @override
    def conditions(self, *, quick: bool) -> list[Condition]:
        delays = intra_rtt_fairness.QUICK_ONE_WAY_MS if quick else intra_rtt_fairness.ONE_WAY_MS
        rates = bandwidth_sweep.QUICK_RATES_MBPS if quick else bandwidth_sweep.RATES_MBPS
        found = []
        for order, schemes in ORDERS.items():
            for buffer in BUFFERS_BDP:
                place: dict[str, float | str] = {"buffer_bdp": buffer, "cubic": order}
                rest = f"buffer={buffer:g}bdp,cubic={order}"
                rate = intra_rtt_fairness.RATE_MBPS
                found += [
                    Condition(
                        key=f"owd={delay}ms,{rest}",
                        at={"sweep": "delay", "rate_mbps": rate, "one_way_ms": delay, **place},
                        make=partial(intra_rtt_fairness.two_flows, rate, float(delay), buffer, schemes=schemes),
                    )
                    for delay in delays
                ]
                found += [
                    Condition(
                        key=f"rate={rate_mbps}mbps,{rest}",
                        at={
                            "sweep": "rate",
                            "rate_mbps": rate_mbps,
                            "one_way_ms": bandwidth_sweep.ONE_WAY_MS,
                            **place,
                        },
                        make=partial(bandwidth_sweep.coming_and_going, float(rate_mbps), buffer, schemes=schemes),
                    )
                    for rate_mbps in rates
                ]
        return found

    @override
    def measure(self, sample: Sample, scenario: Scenario) -> dict[str, float]:
        begin, end = scenario.times_s["begin"], scenario.times_s["end"]
        cubic = next(place for place, flow in enumerate(scenario.flows) if flow.scheme == CUBIC)
        return {
            "cubic_share": sample.utilization((cubic,), begin, end),
            "utilization": sample.utilization((0, 1), begin, end),
        }

    @override
    def criteria(self, evidence: Evidence, baseline: Evidence | None) -> list[Criterion]:
        found = []
        for order in ORDERS:
            for buffer in BUFFERS_BDP:
                mean = evidence.mean("cubic_share", located(buffer_bdp=buffer, cubic=order))
                found.append(
                    Criterion("cubic_share", f"{buffer:g} BDP, Cubic {order}", mean, low=SHARE[0], high=SHARE[1])
                )
        return found

    @override
    def headline(self, criteria: Sequence[Criterion]) -> str:
        # Too much and too little are both wrong: the span over buffers and orders tells which it is.
        found = [one.value for one in criteria if one.value is not None]
        return f"{min(found):.2f} to {max(found):.2f}" if found else "–"
