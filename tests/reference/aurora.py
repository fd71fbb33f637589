"""Aurora: a rate that a small network multiplies every half round trip.

Jay, Rotman, Godfrey, Schapira and Tamar, *A Deep Reinforcement Learning Perspective on Internet Congestion Control*
(ICML 2019). Published is the code that trains it, PCCproject/PCC-RL @64bea6e: the agent and its simulator
(``src/gym/network_sim.py``), its features (``src/common/sender_obs.py``), its hyper-parameters
(``src/gym/stable_solve.py``), and a shim for live links. The policy here was trained by ccgym, from
``configs/aurora.yaml``, in ccgym's simulator.

What the agent sees, does and is rewarded for is declared in that file and computed by the native core. The functions
below are a second, independent reading of PCC-RL's formulas in plain Python, which the tests compare with the core over
whole episodes. ``docs/studies/aurora.md`` says where ours differs from PCC-RL, and what the policy reaches.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

CONFIG: Final = "aurora"
"""The configuration: ``configs/aurora.yaml``."""
PRESET: Final = "ccgym/Aurora-v0"
"""The environment."""

# --- Published numbers (PCC-RL @64bea6e) -----------------------------------------------------------------------------

HISTORY: Final = 10
"""Intervals in an observation (``--history-len``)."""
DELTA: Final = 0.025
"""Change of the rate by an action of one (``DELTA_SCALE``)."""
MIN_RATE: Final = 40.0
"""Packets/s (``MIN_RATE``)."""
MAX_RATE: Final = 1000.0
"""Packets/s (``MAX_RATE``)."""
PACKET_BYTES: Final = 1500
"""``BYTES_PER_PACKET``."""
REWARD_SCALE: Final = 0.001
"""``REWARD_SCALE``."""
THROUGHPUT_WEIGHT: Final = 10.0
"""Per packet/s."""
LATENCY_WEIGHT: Final = -1000.0
"""Per second."""
LOSS_WEIGHT: Final = -2000.0
"""Of losing everything."""
EMPTY: Final = (0.0, 1.0, 1.0)
"""Features of an interval that was not recorded."""
INFLATION_BOUNDS: Final = (-1.0, 10.0)
RATIO_BOUNDS: Final = (1.0, 10_000.0)
SEND_BOUNDS: Final = (0.0, 1000.0)

# --- The formulas in Python ------------------------------------------------------------------------------------------


def next_rate(rate: float, action: float) -> float:
    """The rate after an action (``Sender.apply_rate_delta``), in the unit of ``rate``, before limits."""
    step = DELTA * action
    return rate * (1.0 + step) if step >= 0 else rate / (1.0 - step)


def limited(packets_per_s: float) -> float:
    """A rate within the published limits."""
    return min(max(packets_per_s, MIN_RATE), MAX_RATE)


@dataclass
class Reference:
    """Observation and reward of one flow, from the raw statistics of its intervals (``info["interval"]``)."""

    _history: deque[tuple[float, float, float]] = field(
        default_factory=lambda: deque([EMPTY] * HISTORY, maxlen=HISTORY), repr=False
    )
    _smallest_mean_rtt: float = math.inf
    _latest_mean_rtt: float = 0.0

    def observation(self) -> list[float]:
        """The features of the latest :data:`HISTORY` intervals, the oldest first."""
        return [number for features in self._history for number in features]

    def digest(self, interval: Mapping[str, float]) -> float:
        """Take in an interval; returns its reward."""
        seconds = interval["duration_s"]
        mean_rtt = interval["mean_rtt_s"]
        heard = math.isfinite(mean_rtt) and mean_rtt > 0
        if heard:
            self._smallest_mean_rtt = min(self._smallest_mean_rtt, mean_rtt)
            self._latest_mean_rtt = mean_rtt
        # One packet less than was acknowledged: between the first and the last acknowledgement there are that many.
        received = max(interval["acked_bytes"] - PACKET_BYTES, 0.0) / seconds
        sent = interval["sent_bytes"] / seconds
        self._history.append(
            (
                _within(interval["half_split_rtt_change_s"] / seconds, INFLATION_BOUNDS),
                _within(mean_rtt / self._smallest_mean_rtt if heard else 1.0, RATIO_BOUNDS),
                _within(sent / received if received > 0 and sent < 1000.0 * received else 1.0, SEND_BOUNDS),
            )
        )
        settled = interval["acked_packets"] + interval["lost_packets"]
        return REWARD_SCALE * (
            THROUGHPUT_WEIGHT * received / PACKET_BYTES
            + LATENCY_WEIGHT * self._latest_mean_rtt
            + LOSS_WEIGHT * (interval["lost_packets"] / settled if settled else 0.0)
        )


def _within(value: float, bounds: tuple[float, float]) -> float:
    return min(max(value, bounds[0]), bounds[1])
