"""Indigo: a window that a small recurrent network moves every ten milliseconds, taught by one who knows the path.

Yan, Ma, Hill, Raghavan, Wahby, Levis and Winstein, *Pantheon: the training ground for Internet congestion-control
research* (USENIX ATC 2018), section 4. Published is the code that trains and runs it, StanfordSNR/indigo @463d89b: what
the sender measures and does (``env/sender.py``), how that is scaled (``helpers/helpers.py``), the network
(``dagger/models.py``), the training (``dagger/dagger.py``), its links and expert (``dagger/worker.py``,
``dagger/best_cwnds.yml``, ``dagger/experts.py``). The policy here was trained by ccgym, from ``configs/indigo.yaml``,
in ccgym's simulator.

What the agent sees and does is declared in that file and computed by the native core. The functions below are a second,
independent reading of the published formulas in plain Python, acknowledgement by acknowledgement, which the tests
compare with the core over whole episodes. ``docs/studies/indigo.md`` says where ours differs from the published one.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

CONFIG: Final = "indigo"
"""The configuration: ``configs/indigo.yaml``."""

# --- Published numbers (StanfordSNR/indigo @463d89b) -----------------------------------------------------------------

ACTIONS: Final = ("/2", "-10", "+0", "+10", "*2")
"""What a decision does to the window (``env/sender.py``, ``action_mapping``)."""
FIRST_ACTION: Final = 4
"""The previous action that the first observation shows (``dagger/run_sender.py``)."""
FIRST_WINDOW: Final = 10.0
"""Packets (``env/sender.py``)."""
MIN_WINDOW: Final = 2.0
"""Packets (``env/sender.py``, ``take_action``)."""
STEP_MS: Final = 10
"""A step ends with the first acknowledgement more than this many whole milliseconds later (``env/sender.py``)."""
WEIGHT: Final = 0.125
"""Of a new sample in the averages (``env/sender.py``, ``update_state``)."""
DELAY_SCALE_MS: Final = 200.0
RATE_SCALE_MBPS: Final = 200.0
WINDOW_SCALE: Final = 5000.0
"""What the four numbers of the state are divided by (``helpers/helpers.py``, ``normalize``)."""
EPISODE_STEPS: Final = 1000
"""Decisions per episode (``env/sender.py``, ``max_steps``)."""
LSTM_UNITS: Final = 32
"""In one layer (``dagger/models.py``)."""
CALIBRATED_WINDOWS: Final = (5, 40, 70, 500, 690, 870)
"""The expert's windows on the calibrated emulators 1 to 6 (``dagger/worker.py``)."""

# --- The formulas in Python ------------------------------------------------------------------------------------------


def next_window(window: float, action: int) -> float:
    """The window after an action, packets (``take_action``)."""
    return max(MIN_WINDOW, _moved(window, action))


def _moved(window: float, action: int) -> float:
    name, number = ACTIONS[action][0], float(ACTIONS[action][1:])
    operation = {"/": operator.truediv, "-": operator.sub, "+": operator.add, "*": operator.mul}[name]
    return float(operation(window, number))


def best_action(window: float, target: float) -> int:
    """The expert's action: what comes nearest to its window, limits aside; the first of equals (``dagger/experts.py``).

    Ours counts limits in, which makes a difference only where halving would go below the floor.
    """
    return min(range(len(ACTIONS)), key=lambda action: abs(_moved(window, action) - target))


def is_over(started_ns: int, now_ns: int) -> bool:
    """Whether a step that started then ends with an acknowledgement now: the clock counts whole milliseconds."""
    return now_ns // 1_000_000 - started_ns // 1_000_000 > STEP_MS


def normalized(state: Sequence[float], previous_action: int) -> list[float]:
    """The network's nine inputs from delay in ms, both rates in Mbit/s, window in packets, and the previous action."""
    delay, delivery, sending, window = state
    one_hot = [float(action == previous_action) for action in range(len(ACTIONS))]
    return [
        delay / DELAY_SCALE_MS,
        delivery / RATE_SCALE_MBPS,
        sending / RATE_SCALE_MBPS,
        window / WINDOW_SCALE,
        *one_hot,
    ]


@dataclass(frozen=True)
class Stamp:
    """What a packet carries (``env/sender.py``, ``send``), and when the packets before it were sent."""

    sent_ns: int
    """When it left."""
    sent_bytes: int
    """Bytes sent before it."""
    delivered: int
    """Bytes acknowledged by then."""
    delivered_ns: int
    """When the latest of them was; before the first, the time of sending."""
    flight_ns: int
    """When the packet left whose acknowledgement was the latest by then."""


@dataclass
class Reference:
    """The state of one sender: told of every packet that leaves and every acknowledgement, in order."""

    packet_bytes: int = 1500
    """Bytes of a packet on the wire."""
    ack_clock_only: bool = False
    """Whether a delivery rate is over the time between acknowledgements alone, as published. The core takes the longer
    of that and the time in which the packets were sent, as BBR's draft has it since."""
    _sent: int = 0
    _delivered: int = 0
    _delivered_ns: int | None = None
    _flight_ns: int = 0
    _min_rtt_ns: float = math.inf
    _averages: list[float] = field(default_factory=list)

    def send(self, now_ns: int) -> Stamp:
        """A packet leaves."""
        delivered_ns = now_ns if self._delivered_ns is None else self._delivered_ns
        stamp = Stamp(now_ns, self._sent, self._delivered, delivered_ns, self._flight_ns)
        self._sent += self.packet_bytes
        return stamp

    def acknowledge(self, stamp: Stamp, now_ns: int) -> None:
        """The packet with this stamp is acknowledged."""
        rtt = now_ns - stamp.sent_ns
        self._min_rtt_ns = min(self._min_rtt_ns, rtt)
        self._delivered += self.packet_bytes
        self._delivered_ns = now_ns
        elapsed = now_ns - stamp.delivered_ns
        if not self.ack_clock_only:
            elapsed = max(elapsed, stamp.sent_ns - stamp.flight_ns)
        self._flight_ns = stamp.sent_ns
        samples = [
            (rtt - self._min_rtt_ns) / 1e6,
            8000 * (self._delivered - stamp.delivered) / max(elapsed, 1),
            8000 * (self._sent - stamp.sent_bytes) / max(rtt, 1),
        ]
        if self._averages:
            samples = [(1 - WEIGHT) * old + WEIGHT * new for old, new in zip(self._averages, samples, strict=True)]
        self._averages = samples

    def step(self) -> tuple[float, float, float]:
        """A step ends: delay in ms, delivery rate and sending rate in Mbit/s, each averaged over this step alone."""
        delay, delivery, sending = self._averages
        self._averages = []
        return delay, delivery, sending
