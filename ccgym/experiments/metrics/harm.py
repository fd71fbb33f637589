"""Harm: how much worse a flow's result is than alone on the path; 0 is no harm, 100 % the max (Ware et al., 2019)."""

from __future__ import annotations

from typing import ClassVar, Final, Literal

from pydantic import Field
from typing_extensions import override

from ccgym.errors import ConfigError
from ccgym.experiments.metrics.base import Better, Measured, OverTime
from ccgym.experiments.metrics.declared_loss import DeclaredLoss
from ccgym.experiments.metrics.goodput import Goodput
from ccgym.experiments.metrics.round_trip_time import RoundTripTime
from ccgym.units import Nanoseconds

QUANTITIES: Final[dict[str, type[OverTime]]] = {
    "throughput": Goodput,
    "delay": RoundTripTime,
    "loss": DeclaredLoss,
}
"""Quantities in which a flow can be harmed."""


class Harm(OverTime):
    """Harm that the other flows do to one flow.

    With x alone and y with other flows, harm is (x − y) / x if more is better, and (y − x) / y if less is better (Ware,
    Mukerjee, Seshan and Sherry, "Beyond Jain's Fairness Index", HotNets 2019). If the flow has a better result with
    other flows, harm is 0: the definition would give negative values without a bound.
    """

    BETTER: ClassVar[Better] = "lower"

    label: str = "harm"
    unit: str = "%"
    quantity: Literal["throughput", "delay", "loss"] = Field(alias="in")
    """Quantity in which the flow is harmed: ``throughput``, ``delay`` (round-trip time) or ``loss``."""

    @property
    @override
    def alone(self) -> int:
        if len(self.flows) != 1:
            raise ConfigError(
                "wrong-count", f"flows {list(self.flows)}", expected="the one flow that is harmed", where=self.key
            )
        return self.flows[0]

    @override
    def of(self, run: Measured) -> float | None:
        """Return the quantity; :meth:`compared` computes the harm. In a run alone, the flow is the only flow."""
        flow = 1 if len(run.record.flows) == 1 else self.alone
        part = {"from": Nanoseconds(self.begin), "to": None if self.end is None else Nanoseconds(self.end)}
        return QUANTITIES[self.quantity].model_validate({"key": self.key, "flows": (flow,), **part}).of(run)

    @override
    def compared(self, value: float | None, alone: float | None) -> float | None:
        if value is None or alone is None:
            return None
        worse, of = (alone - value, alone) if QUANTITIES[self.quantity].BETTER == "higher" else (value - alone, value)
        return max(0.0, worse / of) if of > 0 else 0.0
