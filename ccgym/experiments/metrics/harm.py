"""Harm: how much worse off a flow is than alone on the path; 0 is not at all, 100 % entirely (Ware et al., 2019)."""

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
"""What a flow can be harmed in."""


class Harm(OverTime):
    """Harm that the other flows do to one.

    With x alone and y with others, harm is (x − y) / x where more is better, and (y − x) / y where less is better
    (Ware, Mukerjee, Seshan and Sherry, "Beyond Jain's Fairness Index", HotNets 2019). A flow that is better off with
    others is not harmed: 0, where the definition would be negative without bound.
    """

    BETTER: ClassVar[Better] = "lower"

    label: str = "harm"
    unit: str = "%"
    quantity: Literal["throughput", "delay", "loss"] = Field(alias="in")
    """What the flow is harmed in: ``throughput``, ``delay`` (round-trip time) or ``loss``."""

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
        """The quantity itself, from which :meth:`compared` makes the harm. Alone, the flow is the run's only one."""
        flow = 1 if len(run.record.flows) == 1 else self.alone
        part = {"from": Nanoseconds(self.begin), "to": None if self.end is None else Nanoseconds(self.end)}
        return QUANTITIES[self.quantity].model_validate({"key": self.key, "flows": (flow,), **part}).of(run)

    @override
    def compared(self, value: float | None, alone: float | None) -> float | None:
        if value is None or alone is None:
            return None
        worse, of = (alone - value, alone) if QUANTITIES[self.quantity].BETTER == "higher" else (value - alone, value)
        return max(0.0, worse / of) if of > 0 else 0.0
