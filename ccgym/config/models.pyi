"""Written by `make format` from what the native core declares; see models.py."""

from typing import Any, Literal, TypeAlias

from ccgym.config import declared
from ccgym.config.quantities import Limit

class Infinite(declared.QueueBase):
    """Unbounded FIFO: mahimahi's default."""
    kind: Literal["infinite"] = "infinite"

class Droptail(declared.QueueBase):
    """FIFO that drops arrivals beyond its limit."""
    kind: Literal["droptail"] = "droptail"
    limit: Limit

class Drophead(declared.QueueBase):
    """FIFO that accepts, then drops from its head until the limit holds."""
    kind: Literal["drophead"] = "drophead"
    limit: Limit

class MahimahiCodel(declared.QueueBase):
    """Mahimahi's `codel`, with its deviations from RFC 8289."""
    kind: Literal["mahimahi_codel"] = "mahimahi_codel"
    limit: Limit
    target: int
    interval: int

class MahimahiPie(declared.QueueBase):
    """Mahimahi's `pie`, with its deviations from RFC 8033 and a seeded random stream."""
    kind: Literal["mahimahi_pie"] = "mahimahi_pie"
    limit: Limit
    qdelay_ref: int
    max_burst: int

class Codel(declared.QueueBase):
    """CoDel as in RFC 8289."""
    kind: Literal["codel"] = "codel"
    limit: Limit = Limit(packets=1_000)
    target: int = 5_000_000
    interval: int = 100_000_000
    ecn: bool = False
    ns3: bool = False

class FqCodel(declared.QueueBase):
    """Flow queueing with CoDel as in RFC 8290."""
    kind: Literal["fq_codel"] = "fq_codel"
    limit: Limit = Limit(packets=10_240)
    target: int = 5_000_000
    interval: int = 100_000_000
    quantum: int = 1_514
    flows: int = 1_024
    ecn: bool = False

class Pie(declared.QueueBase):
    """PIE as in RFC 8033."""
    kind: Literal["pie"] = "pie"
    limit: Limit = Limit(packets=1_000)
    target: int = 15_000_000
    interval: int = 15_000_000
    alpha: float = 0.125
    beta: float = 1.25
    max_burst: int = 150_000_000
    ecn: bool = False
    mark_up_to: float = 0.1

class Red(declared.QueueBase):
    """RED as in Floyd and Jacobson's paper of 1993, gentle by default."""
    kind: Literal["red"] = "red"
    limit: Limit = Limit(packets=1_000)
    min: int = 5
    max: int = 15
    max_probability: float = 0.1
    weight: float = 0.002
    gentle: bool = True
    ecn: bool = False

class Step(declared.QueueBase):
    """FIFO that marks ECN-capable packets above a threshold, for DCTCP (RFC 8257)."""
    kind: Literal["step"] = "step"
    limit: Limit = Limit(packets=1_000)
    threshold: Limit | None = None
    delay: int | None = None

class Dualpi2(declared.QueueBase):
    """DualPI2 as in RFC 9332: a short queue for L4S traffic (ECT(1) and CE) coupled with one for the rest."""
    kind: Literal["dualpi2"] = "dualpi2"
    limit: Limit = Limit(packets=10_000)
    target: int = 15_000_000
    interval: int = 16_000_000
    alpha: float = 0.16
    beta: float = 3.2
    coupling: float = 2.0
    step: int = 1_000_000
    classic_share: float = 0.1

AnyQueue: TypeAlias = Infinite | Droptail | Drophead | MahimahiCodel | MahimahiPie | Codel | FqCodel | Pie | Red | Step | Dualpi2

QueueField: TypeAlias = AnyQueue

class LinkDirection(declared.LinkDirectionBase):
    """One direction of a bottleneck: when it may deliver, and what waits."""
    queue: AnyQueue = Infinite(kind="infinite")
    overhead: int = 0
    device_packets: int = 0

class Link(declared.LinkBase):
    """A bottleneck in one or both directions (mahimahi's `mm-link`)."""
    kind: Literal["link"] = "link"
    uplink: LinkDirection | None = None
    downlink: LinkDirection | None = None
    once: bool = False

class Delay(declared.DelayBase):
    """A propagation delay (mahimahi's `mm-delay`). Order is kept when it shrinks."""
    kind: Literal["delay"] = "delay"
    delay: int | tuple[tuple[int, int], ...]
    tick: int = 0

class Loss(declared.Element):
    """Independent random loss (mahimahi's `mm-loss`)."""
    kind: Literal["loss"] = "loss"
    probability: float | tuple[tuple[int, float], ...]

class Duplicate(declared.Element):
    """Random duplication (netem's `duplicate`): the copy follows at once, and meets the elements behind by itself."""
    kind: Literal["duplicate"] = "duplicate"
    probability: float | tuple[tuple[int, float], ...]

class Bleach(declared.Element):
    """A hop that clears the ECN field: before a link no packet can be marked there, behind it the marks are lost."""
    kind: Literal["bleach"] = "bleach"
    probability: float | tuple[tuple[int, float], ...] = 1.0

class GilbertElliott(declared.Element):
    """Burst loss with two states (Gilbert–Elliott): per packet, first the state may change, then the packet may be
    lost."""
    kind: Literal["gilbert_elliott"] = "gilbert_elliott"
    good_to_bad: float
    bad_to_good: float
    loss_good: float = 0.0
    loss_bad: float = 1.0

class OnOff(declared.Element):
    """Exponential on and off periods, starting on; arrivals while off are dropped (mahimahi's `mm-onoff`) or held."""
    kind: Literal["on_off"] = "on_off"
    mean_on: int
    mean_off: int
    hold: bool = False

class Intermittent(declared.Element):
    """Fixed on and off periods, starting on; arrivals while off are dropped (mahimahi's `mm-intermittent`)."""
    kind: Literal["intermittent"] = "intermittent"
    on: int
    off: int

class UniformJitterDistribution(declared.Declared):
    """Extra delay uniform in [0, max]."""
    kind: Literal["uniform"] = "uniform"
    max: int

class NormalJitterDistribution(declared.Declared):
    """Normal extra delay, cut at zero."""
    kind: Literal["normal"] = "normal"
    mean: int
    std: int

class ExponentialJitterDistribution(declared.Declared):
    """Exponential extra delay."""
    kind: Literal["exponential"] = "exponential"
    mean: int

class WifiJitterDistribution(declared.Declared):
    """Wi-Fi's delay of draft-huitema-ccwg-c4-test: Poisson(1) waits of up to 1 ms for the channel, and for a part of
    the packets, which follows from the mean, Poisson(12) repetitions of 7.5 ms each."""
    kind: Literal["wifi"] = "wifi"
    mean: int | tuple[tuple[int, int], ...]

class QuantizedJitterDistribution(declared.Declared):
    """Packets leave together at multiples of a period, as from a device that collects them (Wi-Fi, a modem)."""
    kind: Literal["quantized"] = "quantized"
    period: int

AnyJitterDistribution: TypeAlias = UniformJitterDistribution | NormalJitterDistribution | ExponentialJitterDistribution | WifiJitterDistribution | QuantizedJitterDistribution

JitterDistributionField: TypeAlias = AnyJitterDistribution

class Jitter(declared.Element):
    """Extra delay per packet, random or up to the next tick of a clock."""
    kind: Literal["jitter"] = "jitter"
    distribution: AnyJitterDistribution
    reorder: bool = False
    flows: tuple[int, ...] = ()

AnyElement: TypeAlias = Link | Delay | Loss | Duplicate | Bleach | GilbertElliott | OnOff | Intermittent | Jitter

ElementField: TypeAlias = AnyElement

class GreedySource(declared.Declared):
    """Always has data: a bulk transfer without an end."""
    kind: Literal["greedy"] = "greedy"

class BytesSource(declared.Declared):
    """A transfer of a number of payload bytes, all there from the start."""
    kind: Literal["bytes"] = "bytes"
    bytes: int

class OnOffSource(declared.Declared):
    """Alternates between always and never having data; exponentially distributed periods, starts on."""
    kind: Literal["on_off"] = "on_off"
    mean_on: int
    mean_off: int

class RateSource(declared.Declared):
    """An application that produces full segments at a rate: application-limited."""
    kind: Literal["rate"] = "rate"
    rate: int | tuple[tuple[int, int], ...]
    bytes: int | None = None

class ConstantTransferSize(declared.TransferSizeBase):
    """Always the same."""
    kind: Literal["constant"] = "constant"
    bytes: int

class UniformTransferSize(declared.TransferSizeBase):
    """Evenly between two bounds."""
    kind: Literal["uniform"] = "uniform"
    min: int
    max: int

class LogUniformTransferSize(declared.TransferSizeBase):
    """Evenly in the logarithm, between two bounds."""
    kind: Literal["log_uniform"] = "log_uniform"
    min: int
    max: int

class ExponentialTransferSize(declared.TransferSizeBase):
    """Exponentially distributed."""
    kind: Literal["exponential"] = "exponential"
    mean: int
    max: int = 1_000_000_000

class ParetoTransferSize(declared.TransferSizeBase):
    """Pareto: many small ones, few very large ones."""
    kind: Literal["pareto"] = "pareto"
    min: int
    shape: float
    max: int = 1_000_000_000

class LognormalTransferSize(declared.TransferSizeBase):
    """Lognormal."""
    kind: Literal["lognormal"] = "lognormal"
    median: int
    sigma: float
    max: int = 1_000_000_000

class TableTransferSize(declared.TransferSizeBase):
    """A table, for example a measured one: linear between its points."""
    kind: Literal["table"] = "table"
    sizes: tuple[int, ...]
    fractions: tuple[float, ...]

AnyTransferSize: TypeAlias = ConstantTransferSize | UniformTransferSize | LogUniformTransferSize | ExponentialTransferSize | ParetoTransferSize | LognormalTransferSize | TableTransferSize

TransferSizeField: TypeAlias = AnyTransferSize

class PoissonSource(declared.Declared):
    """Full segments, or transfers with sizes, that arrive as a Poisson process, independent of earlier ones."""
    kind: Literal["poisson"] = "poisson"
    rate: int
    size: AnyTransferSize | None = None
    bytes: int | None = None

class RequestsSource(declared.Declared):
    """A server that answers requests one after the other, each when the response before it was acknowledged in full and
    the client has thought: request and response, or web pages over one connection."""
    kind: Literal["requests"] = "requests"
    size: AnyTransferSize
    think: int = 0
    count: int | None = None
    group: int | None = None

class MediaSource(declared.Declared):
    """A live video encoder, which follows the scheme's target rate. Needs the profile `udp`."""
    kind: Literal["media"] = "media"
    frame_rate: float = 30.0
    min_rate: int = 50_000
    max_rate: int = 2_500_000
    reaction: int = 200_000_000
    key_interval: int = 0
    key_factor: float = 4.0
    max_wait: int = 500_000_000
    pause: int = 0
    resume: int = 0

AnySource: TypeAlias = GreedySource | BytesSource | OnOffSource | RateSource | PoissonSource | RequestsSource | MediaSource

SourceField: TypeAlias = AnySource

class Host(declared.HostBase):
    """A host with latency."""
    wakeup: int = 0
    batch: int = 1
    busy: int = 0

class Flow(declared.FlowBase):
    """A flow, however it is steered. Rates have their units; plain times are seconds."""
    stop: int | None = None
    extra_rtt: int = 0
    route: tuple[str, ...] = ()
    reverse: bool = False
    profile: Literal["tcp", "udp", "ns3"] = "tcp"
    ack_every: int = 1
    ack_delay: int = 40_000_000
    quick_acks: int = 0
    ack_copies: int = 1
    ack_ahead: int = 0
    hide_loss: bool = False
    mss: int = 1_448
    header: int = 52
    send_buffer: int | None = None
    recovery: Literal["prr", "classic"] = "prr"
    initial_window: int = 10
    host: Host = Host(wakeup=0, batch=1, busy=0)

class FixedClock(declared.Declared):
    """At fixed intervals."""
    kind: Literal["fixed"] = "fixed"
    interval: int
    on_ack: bool = False
    tick: int = 0

class RttClock(declared.Declared):
    """At multiples of a round trip."""
    kind: Literal["rtt"] = "rtt"
    multiple: float
    of: Literal["mean", "smoothed", "min"] = "mean"
    floor: int = 10_000_000
    ceiling: int | None = None
    warm_up_rtts: float = 0.0
    first_rtts: float | None = None
    no_ack: int = 1_000_000_000

AnyClock: TypeAlias = FixedClock | RttClock

ClockField: TypeAlias = AnyClock

class LogPlus(declared.Declared):
    """With another number added first."""
    plus: float

class Feature(declared.FeatureBase):
    """One number of the observation: a signal, transformed in the order of the fields."""
    signal: str
    name: str | None = None
    minus: float | str | None = None
    over: float | str | None = None
    when_undefined: float = 0.0
    log: bool | LogPlus = False
    scale: float = 1.0
    clip: tuple[float, float]
    empty: float | None = None
    history: int | None = None

class Observation(declared.Declared):
    """The observation of an agent."""
    features: tuple[Feature, ...] = ()
    history: int = 1
    previous_action: Literal["none", "value", "one_hot"] = "none"
    initial_action: float | None = None

class DiscreteMap(declared.Declared):
    """One of several operations on the value in force: `*x`, `/x`, `+n`, `-n`. Amounts are packets for a window, and
    packets per min RTT for a rate."""
    kind: Literal["discrete"] = "discrete"
    operations: tuple[str, ...]

class SignedMultiplyMap(declared.Declared):
    """Times 1 + delta·a, or over 1 − delta·a if a is negative (Aurora)."""
    kind: Literal["signed_multiply"] = "signed_multiply"
    delta: float

class ExponentialMap(declared.Declared):
    """Times base to the a-th power (Orca, Sage)."""
    kind: Literal["exponential"] = "exponential"
    base: float

class GainOnEstimateMap(declared.Declared):
    """One of several gains times an estimate; nothing changes while the estimate is unknown."""
    kind: Literal["gain_on_estimate"] = "gain_on_estimate"
    gains: tuple[float, ...]
    estimate: str = "max_delivery_rate"

class PairMap(declared.Declared):
    """Two numbers: the first steers the rate, the second the window, each as `signed_multiply`."""
    kind: Literal["pair"] = "pair"
    delta: float

class PassiveMap(declared.Declared):
    """No action: the base scheme decides."""
    kind: Literal["passive"] = "passive"

AnyMap: TypeAlias = DiscreteMap | SignedMultiplyMap | ExponentialMap | GainOnEstimateMap | PairMap | PassiveMap

MapField: TypeAlias = AnyMap

class Limits(declared.Declared):
    """Bounds of the steered quantity."""
    rate: tuple[float, float] = (10000.0, 1000000000000.0)
    window: tuple[float, float] = (2.0, 1000000.0)
    packets_per_min_rtt: float = 0.0
    gain: tuple[float, float] | None = None

class Smoothing(declared.Declared):
    """Part of the current value that a decision keeps: keep · old + (1 − keep) · new."""
    min_rtt: int
    keep: float

class Cap(declared.Declared):
    """An upper bound of the window: a multiple of the bandwidth-delay product plus packets."""
    bdp: float
    packets: float
    startup: float | None = None
    estimate: str = "max_delivery_rate"

class Inner(declared.InnerBase):
    """A base scheme."""
    scheme: str
    params: dict[str, Any] = {}

class Action(declared.Declared):
    """The action of an agent."""
    map: AnyMap
    target: Literal["rate", "cwnd", "both", "gain"]
    limits: Limits = Limits(rate=(10000.0, 1000000000000.0), window=(2.0, 1000000.0), packets_per_min_rtt=0.0)
    bounds: tuple[float, float] = (-1.0, 1.0)
    smoothing: tuple[Smoothing, ...] | None = None
    pace: Literal["none", "cwnd_over_min_rtt", "cwnd_over_srtt"] = "none"
    cwnd_cap: Cap | None = None
    inner: Inner | None = None

class Term(declared.Declared):
    """One term of a reward."""
    term: str
    weight: float
    name: str | None = None
    phase: tuple[Literal["startup", "drain", "probe"], ...] | None = None

class ThroughputTerm(Term):
    """A rate."""
    term: Literal["throughput"] = "throughput"
    of: str = "delivery_rate"
    unit: Literal["Mbit/s", "packets/s", "MB/s", "bit/s"] = "Mbit/s"
    over: str | None = None

class LatencyTerm(Term):
    """A round-trip time."""
    term: Literal["latency"] = "latency"
    of: str = "mean_rtt"
    unit: Literal["s", "ms"] = "s"

class QueueDelayTerm(Term):
    """Round-trip time above the minimum."""
    term: Literal["queue_delay"] = "queue_delay"
    unit: Literal["s", "ms", "min_rtt"] = "s"
    max: float | None = None

class LossTerm(Term):
    """Fraction of packets lost."""
    term: Literal["loss"] = "loss"
    of: Literal["settled", "sent"] = "settled"

class MarksTerm(Term):
    """Fraction of packets marked with congestion experienced."""
    term: Literal["marks"] = "marks"

class UtilizationTerm(Term):
    """A rate over the path's capacity."""
    term: Literal["utilization"] = "utilization"
    of: str = "delivery_rate"
    base: Literal["link_rate", "fair_share"] = "link_rate"
    max: float | None = None

class UnfairnessTerm(Term):
    """How unequally the flows of the path are served."""
    term: Literal["unfairness"] = "unfairness"

class OrcaPowerTerm(Term):
    """Throughput minus losses over the maximum throughput, times closeness to the minimum round trip, as Orca."""
    term: Literal["orca_power"] = "orca_power"
    loss_factor: float = 5.0
    margin: float = 1.25

AnyTerm: TypeAlias = ThroughputTerm | LatencyTerm | QueueDelayTerm | LossTerm | MarksTerm | UtilizationTerm | UnfairnessTerm | OrcaPowerTerm

TermField: TypeAlias = AnyTerm

class Reward(declared.Declared):
    """The reward: scale × Σ weight × term."""
    scale: float = 1.0
    terms: tuple[AnyTerm, ...] = ()

class RateStart(declared.Declared):
    """At a rate."""
    kind: Literal["rate"] = "rate"
    rate: int

class WindowStart(declared.Declared):
    """With a window."""
    kind: Literal["window"] = "window"
    packets: float = 10.0

class PacketsPerRttStart(declared.Declared):
    """A number of packets, unpaced, before the first round-trip sample; then at that number per round trip."""
    kind: Literal["packets_per_rtt"] = "packets_per_rtt"
    packets: float = 10.0

class SlowStart(declared.Declared):
    """Doubling each round trip until one of the exits; the agent does not decide before."""
    kind: Literal["slow_start"] = "slow_start"
    packets: float = 10.0
    exit: tuple[Literal["loss", "plateau", "delay"], ...] = ('loss', 'plateau', 'delay')

class InnerStart(declared.Declared):
    """As the base scheme starts; the agent does not decide before that has left slow start."""
    kind: Literal["inner"] = "inner"
    gain: float = 1.0

class NoneStart(declared.Declared):
    """As the base scheme starts; the agent decides from the first interval on."""
    kind: Literal["none"] = "none"

AnyStart: TypeAlias = RateStart | WindowStart | PacketsPerRttStart | SlowStart | InnerStart | NoneStart

StartField: TypeAlias = AnyStart

class NoneGuard(declared.Declared):
    """No guard."""
    kind: Literal["none"] = "none"

class RecoveryGuard(declared.Declared):
    """Search upwards from a rate that is low for no visible reason, as slow start does."""
    kind: Literal["recovery"] = "recovery"
    fraction: float = 0.125
    near: float = 2.0
    memory: int = 60_000_000_000
    patience: int = 500_000_000
    loss: float = 0.1
    lift: float = 0.9
    hold: int = 1_000_000_000
    max_hold: int = 16_000_000_000

AnyGuard: TypeAlias = NoneGuard | RecoveryGuard

GuardField: TypeAlias = AnyGuard

class Phases(declared.Declared):
    """Thresholds of the phases."""
    window: int = 10
    growth: float = 0.25
    plateau_steps: int = 3
    exit_queue: float | None = None
    reenter_growth: float = 0.25
    reenter_steps: int = 2

class BestWindowExpert(declared.Declared):
    """A fixed window: the flow's own (parameter `expert_window` of the scheme `learned`), or one that fills the path
    and a little of its queue."""
    kind: Literal["best_window"] = "best_window"
    queueing: int = 5_000_000
    nearest: Literal["log", "linear"] | None = None

class FluidBdpExpert(declared.Declared):
    """The window that fills the path and a fraction of its queue, less the backlog (Muses)."""
    kind: Literal["fluid_bdp"] = "fluid_bdp"
    queue_fraction: float = 0.8
    samples: int = 5
    nearest: Literal["log", "linear"] | None = None

class GainScheduleExpert(declared.Declared):
    """The max delivery rate of the latest intervals, times a gain that depends on the phase (BBR)."""
    kind: Literal["gain_schedule"] = "gain_schedule"
    startup: float = 2.89
    drain: float = 0.3460207612456747
    cycle: tuple[float, ...] = (1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
    window: int = 10
    nearest: Literal["log", "linear"] | None = None

class PolicyExpert(declared.Declared):
    """Another policy, which observes the flow through its own agent, decides when the learner does, and targets the
    result of its decision for the current rate or window."""
    kind: Literal["policy"] = "policy"
    policy: str
    nearest: Literal["log", "linear"] | None = None

AnyExpert: TypeAlias = BestWindowExpert | FluidBdpExpert | GainScheduleExpert | PolicyExpert

ExpertField: TypeAlias = AnyExpert

class Agent(declared.Declared):
    """An agent: clock, observation, action and reward."""
    name: str = "agent"
    clock: AnyClock
    decision_latency: int = 0
    observation: Observation
    action: Action
    reward: Reward = Reward(scale=1.0, terms=())
    startup: AnyStart
    guard: AnyGuard = NoneGuard(kind="none")
    phases: Phases = Phases(window=10, growth=0.25, plateau_steps=3, reenter_growth=0.25, reenter_steps=2)
    min_rtt_window: int | None = None
    ecn: bool | None = None
    expert: AnyExpert | None = None
