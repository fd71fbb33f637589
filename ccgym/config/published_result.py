"""What a report says of a scheme on a path."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class PublishedResult(BaseModel):
    """What a report published for a scheme on a path."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    scheme: str
    """ccgym's name of the scheme."""
    label: str
    """The report's name of the scheme."""
    runs: int
    """Number of runs that the means are of."""
    throughput_mbps: float
    """Mean average throughput, Mbit/s."""
    delay_p95_ms: float
    """Mean 95th percentile of the one-way delay, ms."""
    loss: float
    """Mean loss, a fraction."""
