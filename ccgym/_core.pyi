"""Types of the native core (Rust, crates/ccgym-py)."""

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
        """Parse the text of a trace file. Raises ValueError; its attributes describe the error."""

    @staticmethod
    def from_ms(times: npt.NDArray[np.uint64], name: str) -> Trace:
        """Make a trace from times in milliseconds. Raises ValueError like `parse`."""

    @property
    def name(self) -> str:
        """The name given at construction."""

    @property
    def times_ms(self) -> npt.NDArray[np.uint64]:
        """A copy of the times of all lines, milliseconds."""

    @property
    def mean_rate_bps(self) -> float:
        """12000 · lines / last: bits per second of full 1500-byte IP packets."""

    def __len__(self) -> int: ...

@final
class SimResult:
    """Outcome of one simulation."""

    def summary(self) -> str:
        """Return counters of the run, as JSON."""

    def packets(self, direction: Literal["data", "ack"]) -> dict[str, npt.NDArray[Any]]:
        """Return all packets in order of entry: entered_ns, left_ns (2⁶⁴−1: lost or in flight), size, flow (from 0)."""

    def packet_totals(self) -> list[tuple[tuple[int, int, int, int], tuple[int, int, int, int], int | None]]:
        """Return totals over the data packets of all flows, then of each flow: entered, left, 95th percentile of delay.

        Entered and left are (packets, bytes, first_ns, last_ns). Times and the delay (ns) are whole microseconds.
        """

    def departed(
        self, flows: Sequence[int], begin_ns: int, end_ns: int
    ) -> tuple[tuple[int, int, int, int], npt.NDArray[np.int64]]:
        """Return totals (packets, bytes, first_ns, last_ns) and delays (ns) of packets that left between two times.

        Flows are numbered from 0. Both ends are excluded. Times and delays are whole microseconds.
        """

    def departures(self, flow: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return times when packets of a flow (from 0) left, in order of entry, and one-way delays: ns, whole µs."""

    def curves(self, duration_ns: int) -> list[list[npt.NDArray[np.float64]]]:
        """Return the curves of each flow in a run of this duration (0: not known): ingress and egress, Mbit/s in bins
        of 500 ms from the first event on, and points of the delay: times, s, and delays, ms."""

    def gap_average(self, flow: int, weight: float) -> npt.NDArray[np.float64]:
        """Return the moving average of a flow's (from 0) packet gaps, ms, at each time of the series; NaN before."""

    def frames(self, flow: int) -> dict[str, npt.NDArray[Any]]:
        """Return frames of a flow's (from 0) video encoder: captured_ns, packets (0: skipped), bytes; empty if none."""

    def transfers(self, flow: int) -> dict[str, npt.NDArray[Any]]:
        """Return transfers of a flow's (from 0) source: asked_ns, bytes, finished_ns (2⁶⁴−1: not in the run)."""

    def series(self) -> dict[str, Any]:
        """Return the sampled series: {"t_ns": …, "flows": [{…}, …], "link": {…}}."""

    def link_events(self, direction: str) -> dict[str, npt.NDArray[Any]]:
        """Return events of the first link of a direction (up, down, or the name of one of several links).

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
    """Event before the first packet."""

    @property
    def now_s(self) -> float:
        """Time on the sender's clock."""

    @property
    def flow(self) -> int:
        """Number of the flow, from 0."""

    @property
    def packet_bytes(self) -> int:
        """Bytes of a full packet on the wire. Windows are counted in such packets."""

    @property
    def initial_window(self) -> float:
        """The usual first window, packets."""

    @property
    def seed(self) -> int:
        """Seed for a random generator of the scheme: equal in equal runs."""

@final
class Ack:
    """An ACK that acknowledged at least one packet."""

    @property
    def now_s(self) -> float:
        """Time on the sender's clock."""

    @property
    def acked_packets(self) -> int:
        """Packets newly acknowledged."""

    @property
    def acked_bytes(self) -> int:
        """Bytes newly acknowledged, on the wire."""

    @property
    def lost_packets(self) -> int:
        """Packets newly declared lost."""

    @property
    def lost_bytes(self) -> int:
        """Bytes newly declared lost, on the wire."""

    @property
    def rtt_s(self) -> float | None:
        """RTT sample of this ACK; None if there is none."""

    @property
    def srtt_s(self) -> float | None:
        """Smoothed RTT (sRTT); None before the first sample."""

    @property
    def min_rtt_s(self) -> float | None:
        """Minimum RTT since the flow started; None before the first sample."""

    @property
    def delivery_rate_bps(self) -> float | None:
        """Delivery rate of bytes on the wire, bit/s; None if there is none."""

    @property
    def delivered_bytes(self) -> int:
        """Bytes delivered since the flow started."""

    @property
    def in_flight_packets(self) -> float:
        """Packets in flight after this event."""

    @property
    def in_flight_bytes(self) -> int:
        """Bytes in flight after this event."""

    @property
    def entered_recovery(self) -> bool:
        """Whether the losses started a recovery episode. Reduce the window once per episode."""

    @property
    def in_recovery(self) -> bool:
        """Whether the flow is in recovery. Do not increase the window then."""

    @property
    def cwnd_limited(self) -> bool:
        """Whether the window limits sending. If not, the application does; then do not increase the window."""

    @property
    def ce_packets(self) -> int:
        """Packets newly reported with the ECN mark Congestion Experienced (CE)."""

@final
class Loss:
    """Event: packets were declared lost."""

    @property
    def now_s(self) -> float:
        """Time on the sender's clock."""

    @property
    def lost_packets(self) -> int:
        """Packets newly declared lost."""

    @property
    def lost_bytes(self) -> int:
        """Bytes newly declared lost, on the wire."""

    @property
    def srtt_s(self) -> float | None:
        """Smoothed RTT (sRTT); None before the first sample."""

    @property
    def min_rtt_s(self) -> float | None:
        """Minimum RTT since the flow started; None before the first sample."""

    @property
    def in_flight_packets(self) -> float:
        """Packets in flight after this event."""

    @property
    def in_flight_bytes(self) -> int:
        """Bytes in flight after this event."""

    @property
    def entered_recovery(self) -> bool:
        """Whether the losses started a recovery episode. Reduce the window once per episode."""

    @property
    def in_recovery(self) -> bool:
        """Whether the flow is in recovery. Do not increase the window then."""

@final
class Timeout:
    """Event: the retransmission timer expired."""

    @property
    def now_s(self) -> float:
        """Time on the sender's clock."""

    @property
    def count(self) -> int:
        """Consecutive timeouts, including this one."""

    @property
    def lost_packets(self) -> int:
        """Packets newly declared lost."""

    @property
    def lost_bytes(self) -> int:
        """Bytes newly declared lost, on the wire."""

    @property
    def srtt_s(self) -> float | None:
        """Smoothed RTT (sRTT); None before the first sample."""

    @property
    def min_rtt_s(self) -> float | None:
        """Minimum RTT since the flow started; None before the first sample."""

@final
class Interval:
    """Statistics of the interval between two decisions."""

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
        """Bytes sent, on the wire."""

    @property
    def acked_packets(self) -> int:
        """Packets newly acknowledged."""

    @property
    def acked_bytes(self) -> int:
        """Bytes newly acknowledged, on the wire."""

    @property
    def lost_packets(self) -> int:
        """Packets newly declared lost."""

    @property
    def lost_bytes(self) -> int:
        """Bytes newly declared lost, on the wire."""

    @property
    def loss_fraction(self) -> float:
        """Lost packets over the sum of lost and acknowledged packets; 0 if there are none."""

    @property
    def send_rate_bps(self) -> float:
        """Bytes sent over the length of the interval, as bit/s."""

    @property
    def delivery_rate_bps(self) -> float:
        """Delivery rate of bytes on the wire, bit/s."""

    @property
    def mean_rtt_s(self) -> float | None:
        """Mean of the RTT samples; None if there are none."""

    @property
    def srtt_s(self) -> float | None:
        """Smoothed RTT (sRTT); None before the first sample."""

    @property
    def min_rtt_s(self) -> float | None:
        """Minimum RTT since the flow started; None before the first sample."""

    @property
    def rtt_slope(self) -> float:
        """Least-squares slope of the RTT over time, seconds per second."""

    @property
    def in_flight_packets(self) -> float:
        """Packets in flight after this event."""

    @property
    def in_flight_bytes(self) -> int:
        """Bytes in flight after this event."""

    @property
    def timeouts(self) -> int:
        """Retransmission timeouts."""

    @property
    def ce_packets(self) -> int:
        """Packets newly reported with the ECN mark Congestion Experienced (CE)."""

    @property
    def app_limited(self) -> bool:
        """Whether the application limited sending at some time."""

class SchemeFailure(Exception):
    """A scheme in Python failed: (scheme, method, attribute, value). Attribute and value describe an invalid decision;
    they are empty if the scheme raised an exception."""

@final
class Halt:
    """Stops simulations in other threads: all simulations that have this object, running ones and later ones."""

    def __new__(cls) -> Halt: ...
    def set(self) -> None:
        """Stop the simulations. A running scheme in Python gets a KeyboardInterrupt."""

@final
class Policy:
    """An exported policy: immutable, parsed once, shared by every flow that uses it."""

    @staticmethod
    def load(onnx: bytes, card: str) -> Policy:
        """Load the bytes of an ONNX file and the text of its card. Raises ValueError; its text describes the error."""

    @property
    def name(self) -> str:
        """Name on the card."""

    @property
    def state_size(self) -> int:
        """Numbers in the recurrent state; 0 if the policy has no state."""

    def tree(self) -> str | None:
        """Return a tree's nodes with the number of training decisions in each, as JSON; None for a network."""

    def decide(
        self, observations: npt.NDArray[np.float32], state: npt.NDArray[np.float32] | None = None
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32] | None]:
        """Decide for each row (n × D) from states (n × S; None: initial). Returns actions (n × A) and next states."""

@final
class Actor:
    """A policy in training: a network whose output is the mean of a Gaussian."""

    def __new__(
        cls,
        layers: list[tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]],
        activation: str,
        deviation: npt.NDArray[np.float32],
        low: npt.NDArray[np.float32],
        high: npt.NDArray[np.float32],
    ) -> Actor:
        """`layers`: weights (outputs × inputs) and biases; `activation` between them: tanh, relu, elu or silu.

        `deviation`, `low`, `high` (A each): standard deviation and bounds of an action. The input of the network may
        be only the first features of an observation. Raises ValueError if the sizes of the parts do not match.
        """

@final
class AgentBatch:
    """`count` simulators with at most `learners` learning flows each; one row per learner, ordered by simulator."""

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
        """Return names, with units, of the columns that `step` writes to `stats`."""

    @staticmethod
    def truth_columns() -> list[str]:
        """Return names, with units, of the columns that `truth` writes."""

    def terms(self) -> list[str]:
        """Return names of the columns that `step` writes to `terms`."""

    @property
    def rows(self) -> int:
        """Number of learners in all simulators."""

    @property
    def observation_size(self) -> int:
        """Numbers in an observation, D."""

    @property
    def action_size(self) -> int:
        """Numbers in an action, A; a discrete action is one number, its index."""

    def __len__(self) -> int: ...
    def reset(
        self, index: int, spec_json: str, traces: dict[str, Trace], max_steps: int, obs: npt.NDArray[np.float32]
    ) -> None:
        """Begin an episode in simulator `index`: run to the first decision and write its rows of `obs` (rows × D).

        `max_steps`: decisions after which the episode ends; 0: no limit. Raises ValueError if it cannot be run,
        MemoryError if it would need more memory than the limit.
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

        Returns whether at least one simulator has ended.

        Writes the rows that are due then, and every row of a simulator that ended. `ended`: 0: running, 1: the limit
        of steps was reached, 2: the limit of time was reached. Releases the GIL. Raises ValueError for arrays of the
        wrong size, and if an ended simulator was not reset.
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

        A sample is a decision whose interval has closed. After the resets, a call with the same arrays continues.
        Writes per sample (simulators × K × …), in the order in which the intervals closed: `learners` (the sample's
        learner), `obs`, `truth`, `actions` (before clipping) and `rewards`, from row `taken` of each simulator on;
        `taken` increases. Reads `noise` (simulators × (K + learners − 1) × A) from row `decided` on, which increases
        too. Reads and writes per learner: `now_obs`, `now_truth`, `drawn` (its action in force), `returns`,
        `term_sums`, `lengths`; per simulator: `ended`. Releases the GIL. Raises ValueError for arrays of the wrong
        size, and if an ended simulator was not reset.
        """

    def set_policies(self, policies: dict[str, Policy]) -> None:
        """Replace the policies that flows of later episodes may use."""

    def due(self, out: npt.NDArray[np.uint8]) -> None:
        """Write 1 for each row that waits for an action, else 0 (rows)."""

    def open(self, out: npt.NDArray[np.uint8]) -> None:
        """Write 1 for each row with a decision whose interval is still open, else 0 (rows)."""

    def truth(self, out: npt.NDArray[np.float64]) -> None:
        """Write the ground truth about the path of every row: privileged, for experts, critics and reports."""

    def labels(self, labels: npt.NDArray[np.float32], targets: npt.NDArray[np.float64]) -> None:
        """Write the decision of the agent's expert for every row that is due: actions (rows × A), and targets (rows;
        bit/s if the agent controls the rate, else packets). NaN if there is none. The simulation does not change.
        """

    def label_distances(self, out: npt.NDArray[np.float64]) -> None:
        """Write the distance between the expert's target and the result of each discrete action (rows × actions); NaN
        if there is no label.
        """

    @property
    def expert_truths(self) -> int:
        """Intervals of ground truth that the agent's expert needs; 0 if it needs only a sender's measurements."""

    def summary(self, index: int) -> str:
        """Return the results so far of the episode in simulator `index`, as JSON: one object per learner."""

    def trajectory_hash(self, index: int) -> str:
        """Return the hash over all ACKs of simulator `index` so far."""

def check_agent(agent_json: str) -> None:
    """Raise ValueError if the agent (JSON) is invalid."""

def describe_agent(agent_json: str) -> str:
    """Return an agent's observation, actions and reward, as JSON."""

def agent_vocabulary() -> str:
    """Return all signals, transforms, action maps and reward terms of agents, as JSON."""

def schema() -> str:
    """Return the schema of paths, flows and agents, as definitions of a JSON Schema."""

def simulate(
    spec_json: str,
    traces: dict[str, Trace],
    policies: dict[str, Policy] = ...,
    python: dict[str, type] = ...,
    halt: Halt | None = None,
) -> SimResult:
    """Run one simulation without the GIL.

    Raises ValueError if the specification cannot be run, MemoryError if it would need more than its `max_memory`,
    RuntimeError if `halt` was set, SchemeFailure if a scheme in Python failed, and, in the main thread, the exception
    of a signal handler.
    """

def limits_flows(uplink_json: str, downlink_json: str) -> bool:
    """Return whether an element of a path (elements as JSON) stops the growth of a greedy flow."""

def draw_size(size_json: str, uniform: Callable[[], float]) -> int:
    """Draw a transfer's size in bytes from a law (JSON object); ``uniform`` returns numbers from 0 to below 1."""

def mean_size(size_json: str) -> float:
    """Return the mean size of transfers in bytes under a law (JSON object)."""

def check_scheme(name: str, params_json: str) -> None:
    """Raise ValueError if the scheme does not exist or does not accept the parameters (JSON object)."""

def log_curves(
    entered: Sequence[npt.NDArray[np.int64]], left: Sequence[npt.NDArray[np.int64]], flows: int
) -> list[list[npt.NDArray[np.float64]]]:
    """Return ``SimResult.curves`` of a log of ``flows`` flows (from 0). ``entered``: times (ns), bytes and flows of
    the packets that entered. ``left``: the same of the packets that left, and their one-way delays (ns)."""

def schemes() -> str:
    """Return the registry of schemes as JSON: one object per scheme."""

def net(job: str) -> int:
    """Run a job (a JSON document, see :mod:`ccgym.emulation.job`) and return its exit status.

    Only for a separate process (:mod:`ccgym.emulation.__main__`): it may enter namespaces and handle signals.
    """

def join_run(spec: str, senders: bytes, receivers: bytes, options: str) -> tuple[SimResult, str]:
    """Join the two halves of a run between two machines; return the result, and the report of its path (JSON).

    Args:
        spec: specification of the run, JSON.
        senders: output of the run process on the senders' machine.
        receivers: output of the run process on the receivers' machine.
        options: JSON; ``ntp_offset_ns`` of ``senders`` and ``receivers``: true time minus wall clock, per machine.

    Raises:
        ValueError: The two halves do not match.
    """

def load_run(path: str) -> tuple[SimResult, str]:
    """Read the output of a run process: the result, and its report on the path as JSON. Raises ValueError."""
