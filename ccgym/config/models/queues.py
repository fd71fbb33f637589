"""Queue disciplines.

Written by `make docs` from the declarations in Rust (spec.rs of ccgym-path and ccgym-run, and the
agent's spec): change it there.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field

from ccgym.config import declared
from ccgym.config.quantities import Limit, MillisecondsField, PeriodField, ProbabilityField, TimeField


class Infinite(declared.QueueBase):
    """Unbounded FIFO: mahimahi's default."""

    WORDS: ClassVar[str] = "infinite queue"
    kind: Literal["infinite"] = "infinite"


class Droptail(declared.QueueBase):
    """FIFO that drops arrivals beyond its limit."""

    WORDS: ClassVar[str] = "droptail {limit}"
    kind: Literal["droptail"] = "droptail"
    limit: Limit = Field(description="Limit.")


class Drophead(declared.QueueBase):
    """FIFO that accepts, then drops from its head until the limit holds."""

    WORDS: ClassVar[str] = "drophead {limit}"
    kind: Literal["drophead"] = "drophead"
    limit: Limit = Field(description="Limit.")


class MahimahiCodel(declared.QueueBase):
    """Mahimahi's `codel`, with its deviations from RFC 8289."""

    WORDS: ClassVar[str] = "mahimahi's CoDel {limit} (target {target}, interval {interval})"
    kind: Literal["mahimahi_codel"] = "mahimahi_codel"
    limit: Limit = Field(description="Tail-drop limit.")
    target: MillisecondsField = Field(description="Target delay, whole milliseconds.")
    interval: MillisecondsField = Field(description="Interval, whole milliseconds.")


class MahimahiPie(declared.QueueBase):
    """Mahimahi's `pie`, with its deviations from RFC 8033 and a seeded random stream."""

    WORDS: ClassVar[str] = "mahimahi's PIE {limit} (reference {qdelay_ref}, burst {max_burst})"
    kind: Literal["mahimahi_pie"] = "mahimahi_pie"
    limit: Limit = Field(description="Tail-drop limit.")
    qdelay_ref: MillisecondsField = Field(description="Reference delay, whole milliseconds.")
    max_burst: MillisecondsField = Field(description="Burst allowance, whole milliseconds.")


class Codel(declared.QueueBase):
    """CoDel as in RFC 8289."""

    WORDS: ClassVar[str] = "CoDel {limit} (target {target}, interval {interval}{ecn:, ECN|}{ns3:, as ns-3|})"
    kind: Literal["codel"] = "codel"
    limit: Limit = Field(default=Limit(packets=1000), description="Tail-drop limit; Linux's default is 1000 packets.")
    target: PeriodField = Field(default=5_000_000, description="Target sojourn time (RFC: 5 ms).")
    interval: PeriodField = Field(default=100_000_000, description="Interval (RFC: 100 ms).")
    ecn: bool = Field(default=False, description="Mark ECN-capable packets instead of dropping.")
    ns3: bool = Field(
        default=False,
        description=(
            "As ns-3.37 has it: square roots by one step of Newton's method per drop, a clock in units of 1024 ns, one "
            "waiting packet is a standing queue, and an episode that ended before its next drop was due is forgotten."
        ),
    )


class FqCodel(declared.QueueBase):
    """Flow queueing with CoDel as in RFC 8290."""

    WORDS: ClassVar[str] = "FQ-CoDel {limit} (target {target}, interval {interval}{ecn:, ECN|})"
    kind: Literal["fq_codel"] = "fq_codel"
    limit: Limit = Field(default=Limit(packets=10240), description="Limit over all flow queues (RFC: 10240 packets).")
    target: PeriodField = Field(default=5_000_000, description="Target sojourn time (RFC: 5 ms).")
    interval: PeriodField = Field(default=100_000_000, description="Interval (RFC: 100 ms).")
    quantum: int = Field(default=1514, ge=1, le=2_147_483_647, description="Bytes per round-robin turn (RFC: 1514).")
    flows: int = Field(default=1024, ge=1, le=65_536, description="Number of flow queues (RFC: 1024).")
    ecn: bool = Field(default=False, description="Mark ECN-capable packets instead of dropping.")


class Pie(declared.QueueBase):
    """PIE as in RFC 8033."""

    WORDS: ClassVar[str] = "PIE {limit} (target {target}{ecn:, ECN|})"
    kind: Literal["pie"] = "pie"
    limit: Limit = Field(default=Limit(packets=1000), description="Tail-drop limit; Linux's default is 1000 packets.")
    target: PeriodField = Field(default=15_000_000, description="Target delay (RFC: 15 ms).")
    interval: PeriodField = Field(
        default=15_000_000, description="Time between updates of the probability (RFC: 15 ms)."
    )
    alpha: float = Field(
        default=0.125,
        ge=0,
        le=1000,
        description="Change of probability per update and second of delay above target (RFC: 1/8), before it is tuned.",
    )
    beta: float = Field(
        default=1.25,
        ge=0,
        le=1000,
        description=(
            "Change of probability per second by which the delay has grown since the last update (RFC: 1 + 1/4)."
        ),
    )
    max_burst: TimeField = Field(
        default=150_000_000, description="Time in which a burst passes without early drops (RFC: 150 ms)."
    )
    ecn: bool = Field(default=False, description="Mark ECN-capable packets instead of dropping, up to `mark_up_to`.")
    mark_up_to: ProbabilityField = Field(
        default=0.1, description="With `ecn`, the probability above which packets are still dropped (RFC: 10 %)."
    )


class Red(declared.QueueBase):
    """RED as in Floyd and Jacobson's paper of 1993, gentle by default."""

    WORDS: ClassVar[str] = "RED {limit} ({min} to {max} packets, {max_probability}{ecn:, ECN|})"
    kind: Literal["red"] = "red"
    limit: Limit = Field(default=Limit(packets=1000), description="Tail-drop limit.")
    min: int = Field(
        default=5,
        ge=1,
        le=2_147_483_647,
        description="Average queue, in packets, from which on some are dropped at random (1993: 5).",
    )
    max: int = Field(
        default=15,
        ge=2,
        le=2_147_483_647,
        description="Average queue, in packets, at which the probability is `max_probability` (1993: 15).",
    )
    max_probability: ProbabilityField = Field(
        default=0.1, description="Probability of a drop where the average comes to `max` (1993: 2 %)."
    )
    weight: float = Field(
        default=0.002, ge=1e-06, le=1, description="Weight of the queue in its average, per arrival (1993: 0.002)."
    )
    gentle: bool = Field(
        default=True, description="Above `max` the probability grows to one at twice `max`, instead of being one."
    )
    ecn: bool = Field(
        default=False, description="Mark ECN-capable packets instead of dropping, as long as not all are dropped."
    )


class Step(declared.QueueBase):
    """FIFO that marks ECN-capable packets above a threshold, for DCTCP (RFC 8257)."""

    WORDS: ClassVar[str] = "step marking {limit} (above {threshold}, delay {delay})"
    kind: Literal["step"] = "step"
    limit: Limit = Field(default=Limit(packets=1000), description="Tail-drop limit.")
    threshold: Limit | None = Field(default=None, description="Mark arrivals that bring the queue above this.")
    delay: TimeField | None = Field(default=None, description="Mark packets that have waited longer than this.")


class Dualpi2(declared.QueueBase):
    """DualPI2 as in RFC 9332: a short queue for L4S traffic (ECT(1) and CE) coupled with one for the rest."""

    WORDS: ClassVar[str] = "DualPI2 {limit} (target {target}, step {step}, coupling {coupling})"
    kind: Literal["dualpi2"] = "dualpi2"
    limit: Limit = Field(
        default=Limit(packets=10000), description="Tail-drop limit over both queues; Linux's default is 10000 packets."
    )
    target: PeriodField = Field(default=15_000_000, description="Target delay of classic traffic (RFC: 15 ms).")
    interval: PeriodField = Field(
        default=16_000_000, description="Time between updates of the probability (RFC: 16 ms)."
    )
    alpha: float = Field(
        default=0.16,
        ge=0,
        le=1000,
        description="Change of the base probability per update and second of delay above target (RFC: 0.16).",
    )
    beta: float = Field(
        default=3.2,
        ge=0,
        le=1000,
        description=(
            "Change of the base probability per second by which the delay has grown since the last update (RFC: 3.2)."
        ),
    )
    coupling: float = Field(
        default=2.0,
        ge=0.1,
        le=100,
        description=(
            "L4S packets are marked with the base probability times this, classic ones dropped with its square."
        ),
    )
    step: TimeField = Field(
        default=1_000_000, description="L4S packets that have waited longer than this are marked (Linux: 1 ms)."
    )
    classic_share: ProbabilityField = Field(
        default=0.1, description="Share of the link that classic traffic has at least (Linux: 10 %)."
    )


AnyQueue: TypeAlias = (
    Infinite | Droptail | Drophead | MahimahiCodel | MahimahiPie | Codel | FqCodel | Pie | Red | Step | Dualpi2
)
"""A queue discipline, one per file in `queue/`."""

QueueField: TypeAlias = Annotated[AnyQueue, declared.OneOf("queue", declared.read_queue)]
