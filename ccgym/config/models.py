"""What users may write about paths, flows and agents: type, unit, range, default and help of each parameter.

Written by `make docs` from the declarations in Rust (spec.rs of ccgym-link and ccgym-run, and the agent's spec):
change it there.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Field

from ccgym.config import declared
from ccgym.config.expressions import BoundsField, ExpressionField, OperandField, OperationField
from ccgym.config.quantities import (
    BytesField,
    FlowRateField,
    Limit,
    MillisecondsField,
    PeriodField,
    ProbabilityField,
    ProbabilitySteps,
    RateField,
    RateSteps,
    TimeField,
    TimeSteps,
)


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

    WORDS: ClassVar[str] = "CoDel {limit} (target {target}, interval {interval}{ecn:, ECN|})"
    kind: Literal["codel"] = "codel"
    limit: Limit = Field(default=Limit(packets=1000), description="Tail-drop limit; Linux's default is 1000 packets.")
    target: PeriodField = Field(default=5_000_000, description="Target sojourn time (RFC: 5 ms).")
    interval: PeriodField = Field(default=100_000_000, description="Interval (RFC: 100 ms).")
    ecn: bool = Field(default=False, description="Mark ECN-capable packets instead of dropping.")


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
        default=0.1, description="With `ecn`, the probability above which packets are dropped all the same (RFC: 10 %)."
    )


class Red(declared.QueueBase):
    """RED as in Floyd and Jacobson's paper of 1993, gentle unless told otherwise."""

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


class LinkDirection(declared.LinkDirectionBase):
    """One direction of a bottleneck: when it may deliver, and what waits."""

    queue: QueueField = Field(default=Infinite(), description="What waits, and what is dropped.")
    overhead: int = Field(
        default=0,
        ge=0,
        le=10_000,
        description="Bytes charged per packet on top of its IP length: mahimahi 4 (the TUN prefix), PPP 2.",
    )
    device_packets: int = Field(
        default=0,
        ge=0,
        le=2_147_483_647,
        description=(
            "With a rate: packets in a device buffer below the queue discipline, out of its sight (ns-3's net device "
            "queue). The packet in transmission counts in neither."
        ),
    )


class Link(declared.LinkBase):
    """A bottleneck in one or both directions (mahimahi's ``mm-link``)."""

    kind: Literal["link"] = "link"
    uplink: LinkDirection | None = Field(default=None, description="The direction of the data; none: no limit.")
    downlink: LinkDirection | None = Field(
        default=None, description="The direction of the acknowledgements; none: no limit."
    )
    once: bool = Field(
        default=False, description="Stop at the end of the traces instead of repeating them (mahimahi's `--once`)."
    )

    def toward(self, direction: declared.Direction) -> LinkDirection | None:
        """The given direction of the link."""
        return self.uplink if direction == "uplink" else self.downlink


class Delay(declared.DelayBase):
    """A propagation delay (mahimahi's `mm-delay`). Order is kept when it shrinks."""

    WORDS: ClassVar[str] = "delay {delay}"
    kind: Literal["delay"] = "delay"
    delay: TimeSteps = Field(description="One-way delay.")
    tick: TimeField = Field(
        default=0,
        description=(
            "Granularity of the clock: mahimahi's is 1 ms, so that its real delay lies in (MS−1, MS]; 0 is exact."
        ),
    )


class Loss(declared.Element):
    """Independent random loss (mahimahi's `mm-loss`)."""

    WORDS: ClassVar[str] = "random loss {probability}"
    kind: Literal["loss"] = "loss"
    probability: ProbabilitySteps = Field(description="Probability per packet.")


class Duplicate(declared.Element):
    """Random duplication (netem's `duplicate`): the copy follows at once, and meets the elements behind by itself."""

    WORDS: ClassVar[str] = "duplicates {probability}"
    kind: Literal["duplicate"] = "duplicate"
    probability: ProbabilitySteps = Field(description="Probability per packet.")


class Bleach(declared.Element):
    """A hop that clears the ECN field: before a link no packet can be marked there, behind it the marks are lost."""

    WORDS: ClassVar[str] = "ECN cleared {probability}"
    kind: Literal["bleach"] = "bleach"
    probability: ProbabilitySteps = Field(default=1.0, description="Probability per packet.")


class GilbertElliott(declared.Element):
    """Burst loss with two states (Gilbert–Elliott): per packet, first the state may change, then the packet may be
    lost."""

    WORDS: ClassVar[str] = "burst loss {loss_bad} in the bad state ({good_to_bad} into, {bad_to_good} out of it)"
    kind: Literal["gilbert_elliott"] = "gilbert_elliott"
    good_to_bad: ProbabilityField = Field(description="Probability of good → bad per packet.")
    bad_to_good: ProbabilityField = Field(description="Probability of bad → good per packet.")
    loss_good: ProbabilityField = Field(default=0.0, description="Loss probability in the good state.")
    loss_bad: ProbabilityField = Field(default=1.0, description="Loss probability in the bad state.")


class OnOff(declared.Element):
    """Exponential on and off periods, starting on; arrivals while off are dropped (mahimahi's `mm-onoff`) or held."""

    WORDS: ClassVar[str] = "on for {mean_on}, {hold:held|off} for {mean_off} (exponential means)"
    kind: Literal["on_off"] = "on_off"
    mean_on: PeriodField = Field(description="Mean on period.")
    mean_off: PeriodField = Field(description="Mean off period.")
    hold: bool = Field(
        default=False,
        description=(
            "Whether arrivals while off leave together when it is on again, as from a host that was not scheduled."
        ),
    )


class Intermittent(declared.Element):
    """Fixed on and off periods, starting on; arrivals while off are dropped (mahimahi's `mm-intermittent`)."""

    WORDS: ClassVar[str] = "on for {on}, off for {off} (fixed)"
    kind: Literal["intermittent"] = "intermittent"
    on: PeriodField = Field(description="On period.")
    off: PeriodField = Field(description="Off period.")


class UniformJitterDistribution(declared.Declared):
    """Extra delay uniform in [0, max]."""

    WORDS: ClassVar[str] = "uniform jitter (max {max})"
    kind: Literal["uniform"] = "uniform"
    max: TimeField = Field(description="Max extra delay.")


class NormalJitterDistribution(declared.Declared):
    """Normal extra delay, cut at zero."""

    WORDS: ClassVar[str] = "normal jitter (mean {mean}, std {std})"
    kind: Literal["normal"] = "normal"
    mean: TimeField = Field(description="Mean.")
    std: TimeField = Field(description="Standard deviation.")


class ExponentialJitterDistribution(declared.Declared):
    """Exponential extra delay."""

    WORDS: ClassVar[str] = "exponential jitter (mean {mean})"
    kind: Literal["exponential"] = "exponential"
    mean: TimeField = Field(description="Mean.")


class WifiJitterDistribution(declared.Declared):
    """Wi-Fi's delay of draft-huitema-ccwg-c4-test: Poisson(1) waits of up to 1 ms for the channel, and for a part of
    the packets, which follows from the mean, Poisson(12) repetitions of 7.5 ms each."""

    WORDS: ClassVar[str] = "Wi-Fi's jitter (mean {mean})"
    kind: Literal["wifi"] = "wifi"
    mean: TimeSteps = Field(
        description=(
            "Mean that the draft asks for, over time: up to 1 ms without repetitions, from 91 ms for all packets."
        ),
    )


class QuantizedJitterDistribution(declared.Declared):
    """Packets leave together at multiples of a period, as from a device that collects them (Wi-Fi, a modem)."""

    WORDS: ClassVar[str] = "packets leave every {period}"
    kind: Literal["quantized"] = "quantized"
    period: PeriodField = Field(description="Period.")


AnyJitterDistribution: TypeAlias = (
    UniformJitterDistribution
    | NormalJitterDistribution
    | ExponentialJitterDistribution
    | WifiJitterDistribution
    | QuantizedJitterDistribution
)
"""Distribution of extra delay; never negative."""

JitterDistributionField: TypeAlias = Annotated[
    AnyJitterDistribution, declared.OneOf("jitter distribution", declared.read_jitter_distribution)
]


class Jitter(declared.Element):
    """Extra delay per packet, random or up to the next tick of a clock."""

    WORDS: ClassVar[str] = "{distribution}{reorder: with reordering|}{flows: for some flows|}"
    kind: Literal["jitter"] = "jitter"
    distribution: JitterDistributionField = Field(
        description="Its distribution; a time alone is the maximum of a uniform one."
    )
    reorder: bool = Field(
        default=False,
        description="Whether later packets may overtake; if not, a packet never leaves before its predecessor.",
    )
    flows: tuple[Annotated[int, Field(ge=0)], ...] = Field(
        default=(),
        description="Numbers of the flows whose packets are delayed, from 1; those of others pass at once. Empty: all.",
    )


AnyElement: TypeAlias = Link | Delay | Loss | Duplicate | Bleach | GilbertElliott | OnOff | Intermittent | Jitter
"""One path element, in the order in which a packet crosses them."""

ElementField: TypeAlias = Annotated[AnyElement, declared.OneOf("element")]


class GreedySource(declared.Declared):
    """Always has data: a bulk transfer without an end."""

    kind: Literal["greedy"] = "greedy"


class BytesSource(declared.Declared):
    """A transfer of a number of payload bytes, all there from the start."""

    kind: Literal["bytes"] = "bytes"
    bytes: BytesField = Field(description="Payload bytes.")


class OnOffSource(declared.Declared):
    """Alternates between always and never having data; exponentially distributed periods, starts on."""

    kind: Literal["on_off"] = "on_off"
    mean_on: PeriodField = Field(description="Mean on period.")
    mean_off: PeriodField = Field(description="Mean off period.")


class RateSource(declared.Declared):
    """An application that produces full segments at a rate: application-limited."""

    kind: Literal["rate"] = "rate"
    rate: RateSteps = Field(description="Payload rate; in steps, times are since the beginning of the run.")
    bytes: BytesField | None = Field(
        default=None, description="Payload bytes after which it ends, in whole segments; absent: it does not."
    )


class PoissonSource(declared.Declared):
    """An application that produces full segments, or bursts of them, as a Poisson process."""

    kind: Literal["poisson"] = "poisson"
    rate: RateField = Field(description="Mean payload rate.")
    burst: int = Field(default=1, ge=1, description="Segments that come together.")
    bytes: BytesField | None = Field(
        default=None, description="Payload bytes after which it ends, in whole bursts; absent: it does not."
    )


class ConstantTransferSize(declared.Declared):
    """Always the same."""

    kind: Literal["constant"] = "constant"
    bytes: BytesField = Field(description="Payload bytes.")


class ExponentialTransferSize(declared.Declared):
    """Exponentially distributed."""

    kind: Literal["exponential"] = "exponential"
    mean: BytesField = Field(description="Mean.")
    max: BytesField = Field(default=1_000_000_000, description="What is larger is cut to this.")


class ParetoTransferSize(declared.Declared):
    """Pareto: many small ones, few very large ones."""

    kind: Literal["pareto"] = "pareto"
    min: BytesField = Field(description="Minimum.")
    shape: float = Field(ge=0.1, le=100, description="Shape; up to 1 the mean is only finite because of `max`.")
    max: BytesField = Field(default=1_000_000_000, description="What is larger is cut to this.")


class LognormalTransferSize(declared.Declared):
    """Lognormal."""

    kind: Literal["lognormal"] = "lognormal"
    median: BytesField = Field(description="Median.")
    sigma: float = Field(ge=0, le=10, description="Standard deviation of the natural logarithm.")
    max: BytesField = Field(default=1_000_000_000, description="What is larger is cut to this.")


AnyTransferSize: TypeAlias = ConstantTransferSize | ExponentialTransferSize | ParetoTransferSize | LognormalTransferSize
"""How large transfers are, bytes of payload."""

TransferSizeField: TypeAlias = Annotated[AnyTransferSize, declared.OneOf("transfer size", declared.read_transfer_size)]


class RequestsSource(declared.Declared):
    """A server that answers requests one after the other, each when the response before it was acknowledged in full and
    the client has thought: request and response, or web pages over one connection."""

    kind: Literal["requests"] = "requests"
    size: TransferSizeField = Field(description="Payload of a response; a size alone is always the same.")
    think: TimeField = Field(
        default=0, description="Mean time from the end of a response to the next request, exponentially distributed."
    )
    count: int | None = Field(default=None, ge=1, description="Number of responses; absent: until the flow stops.")
    group: int | None = Field(
        default=None,
        ge=0,
        description=(
            "Number of a group of flows that are asked at the same time, once all of them have answered (incast)."
        ),
    )


class MediaSource(declared.Declared):
    """A live video encoder, which follows the rate that the scheme tells it. Needs the profile `udp`."""

    kind: Literal["media"] = "media"
    frame_rate: float = Field(default=30.0, ge=1, le=240, description="Frames per second.")
    min_rate: RateField = Field(
        default=50_000, description="Minimum payload rate of the encoder, whatever the scheme says."
    )
    max_rate: RateField = Field(default=2_500_000, description="Maximum payload rate of the encoder.")
    reaction: TimeField = Field(
        default=200_000_000,
        description="Minimum time between two changes of its rate: what the scheme says meanwhile waits.",
    )
    key_interval: TimeField = Field(default=0, description="Time between key frames; 0: there are none.")
    key_factor: float = Field(
        default=4.0, ge=1, le=100, description="Size of a key frame over that of the others; the mean rate stays."
    )
    max_wait: PeriodField = Field(
        default=500_000_000,
        description="While a frame waits in the sender for longer than this, further ones are skipped.",
    )
    pause: TimeField = Field(default=0, description="When it pauses, from the start of the flow.")
    resume: TimeField = Field(default=0, description="When it goes on; not after `pause`: it does not pause.")


AnySource: TypeAlias = (
    GreedySource | BytesSource | OnOffSource | RateSource | PoissonSource | RequestsSource | MediaSource
)
"""What a flow's application does."""

SourceField: TypeAlias = Annotated[AnySource, declared.OneOf("source", declared.read_source)]


class Flow(declared.FlowBase):
    """A flow, however it is steered. Rates have their units; plain times are seconds."""

    stop: PeriodField | None = Field(default=None, description="When it stops sending; the end of the run if absent.")
    extra_rtt: TimeField = Field(
        default=0,
        description=(
            "Round-trip propagation time of its own access link, added to the path's; half of it counts in the one-way "
            "delay of data. Give this or `rtt`."
        ),
    )
    route: tuple[str, ...] = Field(
        default=(),
        description=(
            "Names of the links that it crosses, in the order in which its data does; acknowledgements come back over "
            "the same ones. Absent: all links of the path, in their order."
        ),
    )
    reverse: bool = Field(
        default=False,
        description="Whether its data goes the other way over its links: where the acknowledgements of other flows go.",
    )
    profile: Literal["tcp", "udp", "ns3"] = Field(
        default="tcp",
        description=(
            "Transport: `tcp` (reliable, as Linux), `udp` (datagrams with per-packet receipts) or `ns3` (reliable, as "
            "ns-3.37)."
        ),
    )
    ack_every: int = Field(default=1, ge=1, description="Acknowledge every n-th packet; 2: delayed acknowledgements.")
    ack_delay: TimeField = Field(default=40_000_000, description="… or after this time, whichever comes first.")
    quick_acks: int = Field(
        default=0,
        ge=0,
        description="Number of packets at the start that are acknowledged immediately all the same (Linux: 16).",
    )
    mss: int = Field(default=1448, ge=1, le=65_483, description="Payload bytes of a full packet.")
    header: int = Field(
        default=52,
        ge=0,
        le=1000,
        description="Header bytes of a packet from the IP header on; TCP with timestamps has 52.",
    )
    send_buffer: BytesField | None = Field(
        default=None,
        description=(
            "Bytes that the application may have written and that are not yet acknowledged; what is written and read, "
            "and the delay between the two, is then measured. A reliable profile and the source `greedy`; absent: no "
            "bound."
        ),
    )
    recovery: Literal["prr", "classic"] = Field(
        default="prr",
        description=(
            "What leaves during fast recovery, for schemes that leave it to the transport: `prr` (RFC 9937: a part of "
            "what arrives) or `classic` (RFC 6675: one segment, then nothing until no more than the reduced window is "
            "in flight)."
        ),
    )
    initial_window: int = Field(
        default=10, ge=1, description="Packets sent before the first acknowledgement (RFC 6928: 10)."
    )


class FixedClock(declared.Declared):
    """At fixed intervals."""

    kind: Literal["fixed"] = "fixed"
    interval: PeriodField = Field(description="Length.")
    on_ack: bool = Field(
        default=False,
        description=(
            "Decide at the first acknowledgement strictly more than `interval` after the previous decision instead of "
            "by a timer (Indigo)."
        ),
    )
    tick: TimeField = Field(
        default=0,
        description=(
            "With `on_ack`: compare times truncated to whole ticks, as Indigo does with milliseconds. Zero: exact."
        ),
    )


class RttClock(declared.Declared):
    """At multiples of a round trip."""

    kind: Literal["rtt"] = "rtt"
    multiple: float = Field(le=1000, gt=0, description="Interval over round trip.")
    of: Literal["mean", "smoothed", "min"] = Field(default="mean", description="Which round trip.")
    floor: PeriodField = Field(default=10_000_000, description="Min interval.")
    ceiling: PeriodField | None = Field(
        default=None,
        description=(
            "Max interval; unlimited unless given. After a silence the mean round trip is as long as the silence."
        ),
    )
    warm_up_rtts: float = Field(
        default=0.0,
        ge=0,
        le=1000,
        description="Unrecorded time before the first decision, in multiples of the first round-trip sample.",
    )
    first_rtts: float | None = Field(
        default=None,
        le=1000,
        gt=0,
        description=(
            "Length of the first recorded interval in multiples of the first round-trip sample; `multiple` unless "
            "given."
        ),
    )
    no_ack: PeriodField = Field(default=1_000_000_000, description="Interval while there is no round-trip sample.")


AnyClock: TypeAlias = FixedClock | RttClock
"""When decisions are made."""

ClockField: TypeAlias = Annotated[AnyClock, declared.OneOf("clock", declared.read_clock)]


class LogPlus(declared.Declared):
    """With another number added first."""

    plus: float = Field(gt=0, description="Added first, in the unit of the value.")


class Feature(declared.FeatureBase):
    """One number that the agent sees: a signal, transformed in the order of the fields."""

    signal: ExpressionField = Field(description="The signal, or a statistic of it over several intervals.")
    name: str | None = Field(
        default=None, min_length=1, max_length=100, description="Name to show; made from the parts unless given."
    )
    minus: OperandField | None = Field(default=None, description="Subtracted.")
    over: OperandField | None = Field(default=None, description="Divided by.")
    when_undefined: float = Field(default=0.0, description="The ratio where the divisor is zero.")
    log: bool | LogPlus = Field(default=False, description="Natural logarithm.")
    scale: float = Field(default=1.0, description="Multiplied by.")
    clip: BoundsField = Field(description="Min and max.")
    empty: float | None = Field(default=None, description="Value before anything was recorded.")
    history: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="Intervals seen of this feature; the observation's `history` unless given, and not more.",
    )


class Observation(declared.Declared):
    """What the agent sees."""

    features: tuple[Feature, ...] = Field(
        default=(), max_length=1000, description="Features of one interval, in order."
    )
    history: int = Field(default=1, ge=1, le=1000, description="Number of intervals seen, oldest first.")
    previous_action: Literal["none", "value", "one_hot"] = Field(
        default="none", description="Whether each interval also shows the action in force during it."
    )
    initial_action: float | None = Field(
        default=None, description="Shown as the action before the first; zeros unless given."
    )


class DiscreteMap(declared.Declared):
    """One of several operations on the value in force: `*x`, `/x`, `+n`, `-n`. Amounts are packets for a window, and
    packets per min RTT for a rate."""

    kind: Literal["discrete"] = "discrete"
    operations: tuple[OperationField, ...] = Field(min_length=2, max_length=10_000, description="The operations.")


class SignedMultiplyMap(declared.Declared):
    """Times 1 + delta·a, or over 1 − delta·a where a is negative (Aurora)."""

    kind: Literal["signed_multiply"] = "signed_multiply"
    delta: float = Field(le=1_000_000, gt=0, description="Relative change per unit.")


class ExponentialMap(declared.Declared):
    """Times base to the a-th power (Orca, Sage)."""

    kind: Literal["exponential"] = "exponential"
    base: float = Field(le=1_000_000, gt=1, description="Base.")


class GainOnEstimateMap(declared.Declared):
    """One of several gains times an estimate; nothing changes while the estimate is unknown."""

    kind: Literal["gain_on_estimate"] = "gain_on_estimate"
    gains: tuple[Annotated[float, Field(gt=0, le=1_000_000)], ...] = Field(
        min_length=2, max_length=10_000, description="The gains."
    )
    estimate: ExpressionField = Field(
        default="max_delivery_rate", description="The estimate: bit/s for a rate, packets for a window."
    )


class PairMap(declared.Declared):
    """Two numbers: the first steers the rate, the second the window, each as `signed_multiply`."""

    kind: Literal["pair"] = "pair"
    delta: float = Field(le=1_000_000, gt=0, description="Relative change per unit.")


class PassiveMap(declared.Declared):
    """No action: the base scheme decides."""

    kind: Literal["passive"] = "passive"


AnyMap: TypeAlias = DiscreteMap | SignedMultiplyMap | ExponentialMap | GainOnEstimateMap | PairMap | PassiveMap
"""How numbers become a rate or a window."""

MapField: TypeAlias = Annotated[AnyMap, declared.OneOf("map", declared.read_map)]


class Limits(declared.Declared):
    """Bounds of what is steered."""

    rate: BoundsField = Field(default=(10000.0, 1000000000000.0), description="Of the rate, bit/s.")
    window: BoundsField = Field(default=(2.0, 1000000.0), description="Of the window, packets.")
    packets_per_min_rtt: float = Field(
        default=0.0, ge=0, le=1_000_000, description="Packets per min RTT below which the rate does not fall either."
    )


class Smoothing(declared.Declared):
    """How much of the value in force a decision keeps: keep · old + (1 − keep) · new."""

    min_rtt: TimeField = Field(description="Minimum RTT from which on this counts; the last one that is reached does.")
    keep: float = Field(ge=0, le=1, description="Fraction of the old value.")


class Cap(declared.Declared):
    """An upper bound of the window: a multiple of the bandwidth-delay product plus packets."""

    bdp: float = Field(ge=0, le=1_000_000, description="Multiple of estimate × min RTT.")
    packets: float = Field(ge=0, le=1_000_000_000, description="Packets added to that.")
    startup: float | None = Field(
        default=None,
        ge=0,
        le=1_000_000,
        description="Multiple in start-up, where the estimate lags by a round trip; `bdp` if absent.",
    )
    estimate: ExpressionField = Field(default="max_delivery_rate", description="The bandwidth, bit/s.")


class Inner(declared.InnerBase):
    """A base scheme."""

    scheme: str = Field(min_length=1, max_length=100, description="Its name in the registry.")
    params: dict[str, Any] = Field(default={}, description="Its parameters.")


class Action(declared.Declared):
    """What the agent does."""

    map: MapField = Field(description="How numbers become a rate or a window.")
    target: Literal["rate", "cwnd", "both"] = Field(description="What is steered.")
    limits: Limits = Field(default=Limits(), description="Bounds of what is steered.")
    bounds: BoundsField = Field(
        default=(-1.0, 1.0), description="Bounds of the numbers, for maps that take real numbers."
    )
    smoothing: tuple[Smoothing, ...] | None = Field(
        default=None,
        max_length=100,
        description=(
            "How much of the value in force each decision keeps, by the minimum RTT; nothing unless given (Muses' "
            "trees)."
        ),
    )
    pace: Literal["none", "cwnd_over_min_rtt", "cwnd_over_srtt"] = Field(
        default="none", description="How a steered window is paced."
    )
    cwnd_cap: Cap | None = Field(default=None, description="Upper bound of the window.")
    inner: Inner | None = Field(
        default=None,
        description=(
            "Base scheme whose window the agent overwrites; it goes on from there with each acknowledgement (Orca)."
        ),
    )


class Term(declared.Declared):
    """One term of a reward."""

    term: str
    weight: float = Field(description="Factor; negative for costs.")
    name: str | None = Field(
        default=None, min_length=1, max_length=100, description="Name to show, and in logs; the term's by default."
    )
    phase: tuple[Literal["startup", "drain", "probe"], ...] | None = Field(
        default=None, min_length=1, description="Phases in which it counts; all by default."
    )


class ThroughputTerm(Term):
    """A rate."""

    term: Literal["throughput"] = "throughput"
    of: ExpressionField = Field(default="delivery_rate", description="A rate: delivery_rate, receive_rate, …")
    unit: Literal["Mbit/s", "packets/s", "MB/s", "bit/s"] = Field(
        default="Mbit/s",
        description="Unit of the weight; packets are full ones of wire bytes; without effect where over is given.",
    )
    over: ExpressionField | None = Field(default=None, description="Divide by this rate, instead of a unit.")


class LatencyTerm(Term):
    """A round-trip time."""

    term: Literal["latency"] = "latency"
    of: ExpressionField = Field(default="mean_rtt", description="A signal in seconds.")
    unit: Literal["s", "ms"] = Field(default="s", description="Unit of the weight.")


class QueueDelayTerm(Term):
    """Round-trip time above the minimum."""

    term: Literal["queue_delay"] = "queue_delay"
    unit: Literal["s", "ms", "min_rtt"] = Field(default="s", description="Unit of the weight; min_rtt: relative to it.")
    max: float | None = Field(default=None, ge=0, description="Larger values count as this, in the unit.")


class LossTerm(Term):
    """Fraction of packets lost."""

    term: Literal["loss"] = "loss"
    of: Literal["settled", "sent"] = Field(
        default="settled", description="Of the packets acknowledged or lost in the interval, or of those sent in it."
    )


class UtilizationTerm(Term):
    """A rate over the path's capacity."""

    term: Literal["utilization"] = "utilization"
    of: ExpressionField = Field(default="delivery_rate", description="A rate.")
    base: Literal["link_rate", "fair_share"] = Field(
        default="link_rate", description="The bottleneck's rate, or the flow's fair share of it."
    )
    max: float | None = Field(default=None, ge=0, description="Larger values count as this.")


class UnfairnessTerm(Term):
    """How unequally the flows of the path are served."""

    term: Literal["unfairness"] = "unfairness"


class OrcaPowerTerm(Term):
    """Throughput minus losses over the maximum throughput, times closeness to the minimum round trip, as Orca."""

    term: Literal["orca_power"] = "orca_power"
    loss_factor: float = Field(default=5.0, ge=0, description="What a lost bit costs in delivered ones.")
    margin: float = Field(
        default=1.25,
        ge=1,
        le=1_000_000,
        description="Up to this multiple of the minimum round trip, delay costs nothing.",
    )


AnyTerm: TypeAlias = (
    ThroughputTerm | LatencyTerm | QueueDelayTerm | LossTerm | UtilizationTerm | UnfairnessTerm | OrcaPowerTerm
)
"""One term of a reward."""

TermField: TypeAlias = Annotated[AnyTerm, declared.OneOf("term", tag="term")]


class Reward(declared.Declared):
    """What the agent is rewarded for: scale × Σ weight × term."""

    scale: float = Field(default=1.0, description="Factor of the sum.")
    terms: tuple[TermField, ...] = Field(default=(), max_length=1000, description="The terms.")


class RateStart(declared.Declared):
    """At a rate."""

    kind: Literal["rate"] = "rate"
    rate: FlowRateField = Field(description="Bit/s.")


class WindowStart(declared.Declared):
    """With a window."""

    kind: Literal["window"] = "window"
    packets: float = Field(default=10.0, ge=1, le=1_000_000_000, description="Packets.")


class PacketsPerRttStart(declared.Declared):
    """A number of packets, unpaced, before the first round-trip sample; then at that number per round trip."""

    kind: Literal["packets_per_rtt"] = "packets_per_rtt"
    packets: float = Field(default=10.0, ge=1, le=1_000_000_000, description="Packets.")


class SlowStart(declared.Declared):
    """Doubling each round trip until one of the exits; the agent is not asked before."""

    kind: Literal["slow_start"] = "slow_start"
    packets: float = Field(default=10.0, ge=1, le=1_000_000_000, description="Packets at first.")
    exit: tuple[Literal["loss", "plateau", "delay"], ...] = Field(
        default=("loss", "plateau", "delay"), min_length=1, description="What ends it."
    )


class InnerStart(declared.Declared):
    """As the base scheme starts; the agent is not asked before that has left slow start."""

    kind: Literal["inner"] = "inner"
    gain: float = Field(
        default=1.0,
        ge=1,
        le=10,
        description="Until then each interval multiplies the window of the base scheme by this.",
    )


class NoneStart(declared.Declared):
    """As the base scheme starts, the agent being asked from the first interval on."""

    kind: Literal["none"] = "none"


AnyStart: TypeAlias = RateStart | WindowStart | PacketsPerRttStart | SlowStart | InnerStart | NoneStart
"""How the flow starts."""

StartField: TypeAlias = Annotated[AnyStart, declared.OneOf("start", declared.read_start)]


class NoneGuard(declared.Declared):
    """No guard."""

    kind: Literal["none"] = "none"


class RecoveryGuard(declared.Declared):
    """Search upwards from a rate that is low for no visible reason, as slow start does."""

    kind: Literal["recovery"] = "recovery"
    fraction: float = Field(
        default=0.125,
        le=1,
        gt=0,
        description="A rate is low up to this fraction of the max rate that the path is known to carry …",
    )
    near: float = Field(default=2.0, ge=1, le=1_000_000, description="… or up to this multiple of the lower bound.")
    memory: PeriodField = Field(
        default=60_000_000_000, description="How long the max rate is remembered; silence does not count."
    )
    patience: PeriodField = Field(
        default=500_000_000, description="How long the rate must be low, and the path clear, before the first search."
    )
    loss: ProbabilityField = Field(
        default=0.1,
        description="Loss over that time up to which a path is clear, 0–1; a search ends where loss rises by more.",
    )
    lift: float = Field(default=0.9, le=1, gt=0, description="Fraction of the rate found at which the flow is held.")
    hold: PeriodField = Field(
        default=1_000_000_000,
        description=(
            "How long it is held there before the agent decides again; doubles each time the rate falls back at once."
        ),
    )
    max_hold: PeriodField = Field(
        default=16_000_000_000,
        description=(
            "Max hold, max wait between searches that find nothing, and how long a rate may be low on a path that is "
            "not clear: twice that the second time, four times from the third on."
        ),
    )


AnyGuard: TypeAlias = NoneGuard | RecoveryGuard
"""What lifts the flow off a rate that is too low."""

GuardField: TypeAlias = Annotated[AnyGuard, declared.OneOf("guard", declared.read_guard)]


class Phases(declared.Declared):
    """Thresholds of the phases."""

    window: int = Field(default=10, ge=1, le=1000, description="Intervals over which the max delivery rate is taken.")
    growth: float = Field(
        default=0.25, gt=0, description="Relative growth of that rate below which an interval counts as flat."
    )
    plateau_steps: int = Field(default=3, ge=1, le=10_000, description="Flat intervals that end start-up.")
    exit_queue: float | None = Field(
        default=None,
        ge=0,
        description="One flat interval ends it if the mean round trip exceeds the minimum by more than this fraction.",
    )
    reenter_growth: float = Field(
        default=0.25,
        gt=0,
        description=(
            "Relative growth of the max delivery rate above its minimum since start-up at which start-up begins again …"
        ),
    )
    reenter_steps: int = Field(
        default=2, ge=1, le=10_000, description="… if seen in this number of intervals in a row, without a queue."
    )


class BestWindowExpert(declared.Declared):
    """A fixed window: the flow's own (parameter `expert_window` of the scheme `learned`), or what fills the path and a
    little of its queue."""

    kind: Literal["best_window"] = "best_window"
    queueing: TimeField = Field(default=5_000_000, description="Queuing delay.")
    nearest: Literal["log", "linear"] | None = Field(
        default=None, description="How the distance of an action's result from the target is measured."
    )


class FluidBdpExpert(declared.Declared):
    """The window that fills the path and a fraction of its queue, less the backlog (Muses)."""

    kind: Literal["fluid_bdp"] = "fluid_bdp"
    queue_fraction: ProbabilityField = Field(default=0.8, description="Fraction of the queue's limit.")
    samples: int = Field(default=5, ge=1, le=1000, description="Decisions over which the max window is taken.")
    nearest: Literal["log", "linear"] | None = Field(
        default=None, description="How the distance of an action's result from the target is measured."
    )


class GainScheduleExpert(declared.Declared):
    """The max delivery rate of the latest intervals, times a gain that depends on the phase (BBR)."""

    kind: Literal["gain_schedule"] = "gain_schedule"
    startup: float = Field(default=2.89, le=100, gt=0, description="Gain while the delivery rate grows.")
    drain: float = Field(
        default=0.3460207612456747, le=100, gt=0, description="Gain while the queue of start-up drains."
    )
    cycle: tuple[float, ...] = Field(
        default=(1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0),
        min_length=1,
        max_length=1000,
        description="Gains afterward, one per interval, in a cycle.",
    )
    window: int = Field(
        default=10,
        ge=1,
        le=1000,
        description="Intervals with acknowledgements over which the max delivery rate is taken.",
    )
    nearest: Literal["log", "linear"] | None = Field(
        default=None, description="How the distance of an action's result from the target is measured."
    )


class PolicyExpert(declared.Declared):
    """Another policy, which sees the flow through its own agent, decides when the learner does, and aims at what its
    decision would make of the rate or window in force."""

    kind: Literal["policy"] = "policy"
    policy: str = Field(
        min_length=1, max_length=4096, description="The policy: a pretrained one, a run directory, or a `.onnx` file."
    )
    nearest: Literal["log", "linear"] | None = Field(
        default=None, description="How the distance of an action's result from the target is measured."
    )


AnyExpert: TypeAlias = BestWindowExpert | FluidBdpExpert | GainScheduleExpert | PolicyExpert
"""A teacher in training: its label is the action that comes nearest to its target."""

ExpertField: TypeAlias = Annotated[AnyExpert, declared.OneOf("expert", declared.read_expert)]


class Agent(declared.Declared):
    """An agent: when it decides, what it sees, what it does, and what it is rewarded for."""

    name: str = Field(
        default="agent", min_length=1, max_length=100, pattern=r"^[A-Za-z0-9][\w.+-]*$", description="Name."
    )
    clock: ClockField = Field(description="When it decides.")
    decision_latency: TimeField = Field(default=0, description="Time from a decision to its effect.")
    observation: Observation = Field(description="What it sees.")
    action: Action = Field(description="What it does.")
    reward: Reward = Field(default=Reward(), description="What it is rewarded for.")
    startup: StartField = Field(description="How the flow starts.")
    guard: GuardField = Field(default=NoneGuard(), description="What lifts it off a rate that is too low.")
    phases: Phases = Field(
        default=Phases(), description="Thresholds of the phases that features and reward terms may refer to."
    )
    min_rtt_window: int | None = Field(
        default=None,
        ge=1,
        le=100_000,
        description=(
            "Intervals over which `min_rtt` is taken; the flow's life unless given. Where a path's round trip grows, "
            "the minimum of the flow's life stays too low."
        ),
    )
    expert: ExpertField | None = Field(
        default=None, description="Expert whose labels it can imitate; no effect on what it does."
    )
