"""The native core (Rust, crates/ccgym-py), typed."""

import os
from collections.abc import Callable, Sequence
from typing import Any, Literal, final

import numpy as np
import numpy.typing as npt

__all__ = [
    "Ack",
    "Actor",
    "AgentBatch",
    "Halt",
    "Interval",
    "Loss",
    "Policy",
    "SchemeFailure",
    "SimResult",
    "Start",
    "Timeout",
    "Trace",
    "__version__",
    "agent_vocabulary",
    "check_agent",
    "check_scheme",
    "describe_agent",
    "draw_size",
    "join_run",
    "limits_flows",
    "load_run",
    "log_curves",
    "mean_size",
    "net",
    "schema",
    "schemes",
    "simulate",
]

__version__: str

@final
class Trace:
    """A mahimahi delivery trace: immutable, parsed once, shared by every simulation."""

    @staticmethod
    def parse(text: bytes, name: str) -> Trace:
        """Parse the text of a trace file. Raises ValueError whose attributes say what is wrong."""

    @staticmethod
    def from_ms(times: npt.NDArray[np.uint64], name: str) -> Trace:
        """A trace from milliseconds. Raises ValueError as `parse` does."""

    @property
    def name(self) -> str:
        """The name given at construction."""

    @property
    def times_ms(self) -> npt.NDArray[np.uint64]:
        """A copy of the lines, milliseconds."""

    @property
    def mean_rate_bps(self) -> float:
        """12000 · lines / last: bits per second of full 1500-byte IP packets."""

    def __len__(self) -> int: ...

@final
class SimResult:
    """Outcome of one simulation."""

    def summary(self) -> str:
        """Counters of the run, as JSON."""

    def packets(self, direction: Literal["data", "ack"]) -> dict[str, npt.NDArray[Any]]:
        """Every packet in order of entry: entered_ns, left_ns (2⁶⁴−1: lost or in flight), size, flow (from 0)."""

    def packet_totals(self) -> list[tuple[tuple[int, int, int, int], tuple[int, int, int, int], int | None]]:
        """Totals over the data packets of all flows, then of each: entered, left, 95th percentile of the delay (ns).

        Both are (packets, bytes, first_ns, last_ns); times and the delay are whole microseconds.
        """

    def departed(
        self, flows: Sequence[int], begin_ns: int, end_ns: int
    ) -> tuple[tuple[int, int, int, int], npt.NDArray[np.int64]]:
        """What left of some flows (from 0) in a part of the run: (packets, bytes, first_ns, last_ns), and delays (ns).

        Neither end belongs to it; times and delays are whole microseconds.
        """

    def departures(self, flow: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """When packets of a flow (from 0) left, in order of entry, and their one-way delays: ns, whole microseconds."""

    def curves(self, duration_ns: int) -> list[list[npt.NDArray[np.float64]]]:
        """The curves of each flow in a run of that length: ingress and egress, Mbit/s in bins of 500 ms from the first
        event on, and points of the delays: times, s, and delays, ms. 0: the length is not known."""

    def gap_average(self, flow: int, weight: float) -> npt.NDArray[np.float64]:
        """Moving average of the gaps between a flow's (from 0) packets, ms, at each time of the series; NaN before."""

    def frames(self, flow: int) -> dict[str, npt.NDArray[Any]]:
        """Frames of the video encoder of a flow (from 0): captured_ns, packets (0: skipped), bytes; empty if none."""

    def transfers(self, flow: int) -> dict[str, npt.NDArray[Any]]:
        """Transfers of the source of a flow (from 0): asked_ns, bytes, finished_ns (2⁶⁴−1: not in the run)."""

    def series(self) -> dict[str, Any]:
        """Sampled series: {"t_ns": …, "flows": [{…}, …], "link": {…}}."""

    def link_events(self, direction: str) -> dict[str, npt.NDArray[Any]]:
        """Events of the first link of a direction (up, down, or a name of one of several links).

        Columns: kind, time_ns, size, flow, arrival_ns.
        """

    def write_tunnel_log(
        self, path: str | os.PathLike[str], direction: Literal["data", "ack"], start_epoch_ms: float
    ) -> None:
        """Write Pantheon's merged tunnel log of a direction. Raises OSError."""

    def write_mm_log(self, path: str | os.PathLike[str], direction: Literal["up", "down"], header: str) -> None:
        """Write mahimahi's log of the first link of a direction below `header`. Raises OSError."""

@final
class Start:
    """Before the first packet."""

    @property
    def now_s(self) -> float:
        """Time on the sender's clock."""

    @property
    def flow(self) -> int:
        """Number of the flow, from 0."""

    @property
    def packet_bytes(self) -> int:
        """Bytes of a full packet on the wire, in which windows are counted."""

    @property
    def initial_window(self) -> float:
        """The usual first window, packets."""

    @property
    def seed(self) -> int:
        """A number for a random generator of its own: equal in equal runs."""

@final
class Ack:
    """An acknowledgement that acknowledged something."""

    @property
    def now_s(self) -> float:
        """Time on the sender's clock."""

    @property
    def acked_packets(self) -> int:
        """Packets newly acknowledged."""

    @property
    def acked_bytes(self) -> int:
        """Their bytes on the wire."""

    @property
    def lost_packets(self) -> int:
        """Packets newly declared lost."""

    @property
    def lost_bytes(self) -> int:
        """Their bytes on the wire."""

    @property
    def rtt_s(self) -> float | None:
        """Round-trip sample of this acknowledgement."""

    @property
    def srtt_s(self) -> float | None:
        """Smoothed round-trip time; None before the first sample."""

    @property
    def min_rtt_s(self) -> float | None:
        """Minimum round-trip time of the flow's life; None before the first sample."""

    @property
    def delivery_rate_bps(self) -> float | None:
        """Delivery rate, bytes on the wire."""

    @property
    def delivered_bytes(self) -> int:
        """Bytes delivered over the flow's life."""

    @property
    def in_flight_packets(self) -> float:
        """Packets in flight after this event."""

    @property
    def in_flight_bytes(self) -> int:
        """Their bytes."""

    @property
    def entered_recovery(self) -> bool:
        """Whether the losses began a recovery episode: reduce once per episode."""

    @property
    def in_recovery(self) -> bool:
        """Whether the flow is in recovery: do not grow."""

    @property
    def cwnd_limited(self) -> bool:
        """Whether the window, not the application, limits sending: else do not grow."""

    @property
    def ce_packets(self) -> int:
        """Packets newly reported with congestion-experienced."""

@final
class Loss:
    """Packets were declared lost."""

    @property
    def now_s(self) -> float:
        """Time on the sender's clock."""

    @property
    def lost_packets(self) -> int:
        """Packets newly declared lost."""

    @property
    def lost_bytes(self) -> int:
        """Their bytes on the wire."""

    @property
    def srtt_s(self) -> float | None:
        """Smoothed round-trip time; None before the first sample."""

    @property
    def min_rtt_s(self) -> float | None:
        """Minimum round-trip time of the flow's life; None before the first sample."""

    @property
    def in_flight_packets(self) -> float:
        """Packets in flight after this event."""

    @property
    def in_flight_bytes(self) -> int:
        """Their bytes."""

    @property
    def entered_recovery(self) -> bool:
        """Whether the losses began a recovery episode: reduce once per episode."""

    @property
    def in_recovery(self) -> bool:
        """Whether the flow is in recovery: do not grow."""

@final
class Timeout:
    """The retransmission timer expired."""

    @property
    def now_s(self) -> float:
        """Time on the sender's clock."""

    @property
    def count(self) -> int:
        """Consecutive expiries, this one included."""

    @property
    def lost_packets(self) -> int:
        """Packets newly declared lost."""

    @property
    def lost_bytes(self) -> int:
        """Their bytes on the wire."""

    @property
    def srtt_s(self) -> float | None:
        """Smoothed round-trip time; None before the first sample."""

    @property
    def min_rtt_s(self) -> float | None:
        """Minimum round-trip time of the flow's life; None before the first sample."""

@final
class Interval:
    """What happened between two decisions."""

    @property
    def now_s(self) -> float:
        """Time on the sender's clock."""

    @property
    def duration_s(self) -> float:
        """Length of the interval."""

    @property
    def sent_packets(self) -> int:
        """Packets sent."""

    @property
    def sent_bytes(self) -> int:
        """Their bytes on the wire."""

    @property
    def acked_packets(self) -> int:
        """Packets newly acknowledged."""

    @property
    def acked_bytes(self) -> int:
        """Their bytes on the wire."""

    @property
    def lost_packets(self) -> int:
        """Packets newly declared lost."""

    @property
    def lost_bytes(self) -> int:
        """Their bytes on the wire."""

    @property
    def loss_fraction(self) -> float:
        """Lost over lost plus acknowledged packets; 0 if neither."""

    @property
    def send_rate_bps(self) -> float:
        """Bytes sent over the interval's length."""

    @property
    def delivery_rate_bps(self) -> float:
        """Delivery rate, bytes on the wire."""

    @property
    def mean_rtt_s(self) -> float | None:
        """Mean of the round-trip samples; None without one."""

    @property
    def srtt_s(self) -> float | None:
        """Smoothed round-trip time; None before the first sample."""

    @property
    def min_rtt_s(self) -> float | None:
        """Minimum round-trip time of the flow's life; None before the first sample."""

    @property
    def rtt_slope(self) -> float:
        """Least-squares slope of the round trip over time, seconds per second."""

    @property
    def in_flight_packets(self) -> float:
        """Packets in flight after this event."""

    @property
    def in_flight_bytes(self) -> int:
        """Their bytes."""

    @property
    def timeouts(self) -> int:
        """Retransmission timeouts."""

    @property
    def ce_packets(self) -> int:
        """Packets newly reported with congestion-experienced."""

    @property
    def app_limited(self) -> bool:
        """Whether the application held sending back at some time."""

class SchemeFailure(Exception):
    """A scheme in Python failed: (scheme, method, attribute, value). Attribute and value are those of a decision that
    cannot be taken, empty where the cause is an exception of its own."""

@final
class Halt:
    """Ends simulations in other threads: what was started with it gives up soon, and so does what starts later."""

    def __new__(cls) -> Halt: ...
    def set(self) -> None:
        """End them. A scheme in Python that is at work meets a KeyboardInterrupt."""

@final
class Policy:
    """An exported policy: immutable, parsed once, shared by every flow that uses it."""

    @staticmethod
    def load(onnx: bytes, card: str) -> Policy:
        """Load the bytes of an ONNX file and the text of its card. Raises ValueError with what is wrong."""

    @property
    def name(self) -> str:
        """Name on the card."""

    @property
    def state_size(self) -> int:
        """Cells of the recurrent state; 0 without one."""

    def tree(self) -> str | None:
        """The nodes of a tree and how many decisions of the training came to each, as JSON; None for a network."""

    def decide(
        self, observations: npt.NDArray[np.float32], state: npt.NDArray[np.float32] | None = None
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32] | None]:
        """Decide for each row (n × D) from states (n × S; None: the initial one): actions (n × A), states after."""

@final
class Actor:
    """A policy in training: a network that gives the mean of a Gaussian."""

    def __new__(
        cls,
        layers: list[tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]],
        activation: str,
        deviation: npt.NDArray[np.float32],
        low: npt.NDArray[np.float32],
        high: npt.NDArray[np.float32],
    ) -> Actor:
        """`layers`: weights (outputs × inputs) and biases; `activation` between them: tanh, relu, elu or silu.

        `deviation`, `low`, `high` (A each): standard deviation and bounds of an action. The network may see fewer
        features than an observation has, from its beginning on. Raises ValueError if the parts do not fit together.
        """

@final
class AgentBatch:
    """N simulators with up to so many learning flows each; one row per learner, simulator by simulator."""

    def __new__(
        cls,
        agent_json: str,
        count: int,
        learners: int = 1,
        threads: int = 1,
        policies: dict[str, Policy] = ...,
    ) -> AgentBatch: ...
    @staticmethod
    def columns() -> list[str]:
        """Names, with units, of what `step` writes to `stats`."""

    @staticmethod
    def truth_columns() -> list[str]:
        """Names, with units, of what `truth` writes."""

    def terms(self) -> list[str]:
        """Names of what `step` writes to `terms`."""

    @property
    def rows(self) -> int:
        """Learners of all simulators."""

    @property
    def observation_size(self) -> int:
        """Cells of an observation, D."""

    @property
    def action_size(self) -> int:
        """Cells of an action, A; a discrete one is its index."""

    def __len__(self) -> int: ...
    def reset(
        self, index: int, spec_json: str, traces: dict[str, Trace], max_steps: int, obs: npt.NDArray[np.float32]
    ) -> None:
        """Begin an episode in simulator `index`: run it to its first decision, write its rows of `obs` (rows × D).

        `max_steps`: decisions after which it ends; 0: no limit. Raises ValueError if it cannot be run, MemoryError if
        it would hold more than it may.
        """

    def step(
        self,
        actions: npt.NDArray[np.float32],
        obs: npt.NDArray[np.float32],
        reward: npt.NDArray[np.float64],
        terms: npt.NDArray[np.float64],
        stats: npt.NDArray[np.float64],
        due: npt.NDArray[np.uint8],
        ended: npt.NDArray[np.uint8],
    ) -> bool:
        """Apply the actions of the rows that are due; run each simulator to its next decision or its end.

        Returns whether some simulator has ended.

        Rows that are then due, and every row of a simulator that ended, are written. `ended`: 0 running, 1 its steps
        are over, 2 its time is. The GIL is released. Raises ValueError for arrays of the wrong size, and after an end
        without reset.
        """

    def rollout(
        self,
        actor: Actor,
        noise: npt.NDArray[np.float32],
        decided: npt.NDArray[np.uint64],
        taken: npt.NDArray[np.uint64],
        learners: npt.NDArray[np.uint32],
        obs: npt.NDArray[np.float32],
        truth: npt.NDArray[np.float64],
        actions: npt.NDArray[np.float32],
        rewards: npt.NDArray[np.float32],
        now_obs: npt.NDArray[np.float32],
        now_truth: npt.NDArray[np.float64],
        drawn: npt.NDArray[np.float32],
        returns: npt.NDArray[np.float64],
        term_sums: npt.NDArray[np.float64],
        lengths: npt.NDArray[np.int64],
        ended: npt.NDArray[np.uint8],
    ) -> None:
        """Let `actor` decide for every learner until each simulator has K samples or its episode has ended.

        A sample is a decision whose interval has closed. After the resets a call with the same arrays goes on. Per
        sample (simulators × K × …), in the order in which the intervals closed: `learners` (whose it is), `obs`,
        `truth`, `actions` (before they are clipped) and `rewards` are written, from row `taken` of each simulator on,
        which moves. `noise` (simulators × (K + learners − 1) × A) is read from row `decided` on, which moves too. Per
        learner, read and written: `now_obs`, `now_truth`, `drawn` (its action in force), `returns`, `term_sums`,
        `lengths`; per simulator `ended`. The GIL is released. Raises ValueError for arrays of the wrong size, and after
        an end without reset.
        """

    def set_policies(self, policies: dict[str, Policy]) -> None:
        """Replace the policies that flows of the episodes to come may decide by."""

    def due(self, out: npt.NDArray[np.uint8]) -> None:
        """Write 1 for each row that waits for an action, else 0."""

    def open(self, out: npt.NDArray[np.uint8]) -> None:
        """Write 1 for each row that has decided on something whose interval is still open, else 0."""

    def truth(self, out: npt.NDArray[np.float64]) -> None:
        """Write the truth about every row's path: privileged, for experts, critics and reports."""

    def labels(self, labels: npt.NDArray[np.float32], targets: npt.NDArray[np.float64]) -> None:
        """Write what the agent's expert would do in the place of every row that is due: actions (rows × A), and targets
        (rows; bit/s of a steered rate, else packets). NaN where there is none. Of no effect on anything.
        """

    def label_distances(self, out: npt.NDArray[np.float64]) -> None:
        """Write how far from the expert's target the result of each listed action would be (rows × actions); NaN where
        there is no label.
        """

    @property
    def expert_truths(self) -> int:
        """Intervals whose truth the agent's expert asks for; 0 for one that any sender could ask."""

    def summary(self, index: int) -> str:
        """What the episode of simulator `index` has come to so far, as JSON: one object per learner."""

    def trajectory_hash(self, index: int) -> str:
        """Hash over every acknowledgement of simulator `index` so far."""

def check_agent(agent_json: str) -> None:
    """Raise ValueError unless this is a valid agent (JSON)."""

def describe_agent(agent_json: str) -> str:
    """What an agent observes, does and optimizes, as JSON."""

def agent_vocabulary() -> str:
    """Every signal, transform, action map and reward term that agents can be made of, as JSON."""

def schema() -> str:
    """What users may write about paths, flows and agents, as definitions of a JSON Schema."""

def simulate(
    spec_json: str,
    traces: dict[str, Trace],
    policies: dict[str, Policy] = ...,
    python: dict[str, type] = ...,
    halt: Halt | None = None,
) -> SimResult:
    """Run one simulation, the GIL released.

    Raises ValueError when the specification cannot be run, MemoryError when it would hold more than its `max_memory`,
    RuntimeError when `halt` was set, SchemeFailure when a scheme in Python failed, and, in the main thread, what a
    signal's handler raises.
    """

def limits_flows(uplink_json: str, downlink_json: str) -> bool:
    """Whether something on a path (elements as JSON) keeps a greedy flow from growing for ever."""

def draw_size(size_json: str, uniform: Callable[[], float]) -> int:
    """A transfer's size in bytes, by a law (JSON object); ``uniform`` gives numbers from 0 up to, not including, 1."""

def mean_size(size_json: str) -> float:
    """The mean size of transfers in bytes, by a law (JSON object)."""

def check_scheme(name: str, params_json: str) -> None:
    """Raise ValueError unless the scheme exists and takes these parameters (JSON object)."""

def log_curves(
    entered: Sequence[npt.NDArray[np.int64]], left: Sequence[npt.NDArray[np.int64]], flows: int
) -> list[list[npt.NDArray[np.float64]]]:
    """``SimResult.curves`` of a log of ``flows`` flows (from 0): times (ns), bytes and flows of the packets that
    entered, and of those that left, with their one-way delays (ns)."""

def schemes() -> str:
    """The registry as JSON: one object per scheme."""

def net(job: str) -> int:
    """Do a job (a JSON document, see :mod:`ccgym.emulation.job`) and return its exit status.

    Only for processes of their own (:mod:`ccgym.emulation.__main__`): it may enter namespaces and take over signals.
    """

def join_run(spec: str, senders: bytes, receivers: bytes, options: str) -> tuple[SimResult, str]:
    """A run between two machines, from what each of them left: the result, and what its path reports (JSON).

    Args:
        spec: the run's specification, JSON.
        senders: what the run process of the senders' machine wrote.
        receivers: the same of the receivers'.
        options: JSON; ``ntp_offset_ns`` of ``senders`` and ``receivers``: true time minus the wall clock of each.

    Raises:
        ValueError: They do not fit together.
    """

def load_run(path: str) -> tuple[SimResult, str]:
    """Read what a run process left: the run, and its report on the path as JSON. Raises ValueError."""
