"""Eagle: a sending rate that a recurrent network moves every round trip, taught by BBR's gains and its best episodes.

Emara, Li and Chen, *Eagle: Refining Congestion Control by Learning from the Experts* (INFOCOM 2020). Neither the text
nor the code is public. What is: the abstract (the expert is BBR, the policy a recurrent network trained by deep
reinforcement learning with the expert's help), the wrappers of the authors' fork of Pantheon, iQua/pantheon, which name
its programs, options and models, and the report that its models were measured for. The design here is therefore ours;
``docs/studies/eagle.md`` says choice by choice what is known, what is read from names, and what is ours.

==========  ======================  ================================================================================
Eagle-v1    ``eagle_v1.yaml``       a window moved by discrete actions
Eagle-v2    ``eagle_v2.yaml``       the rate of v3, trained by advantage actor-critic
Eagle-v3    ``eagle.yaml``          a rate, a recurrent network, the cross-entropy method and imitation
==========  ======================  ================================================================================

What the agents see, do and are rewarded for is declared in these files and computed by the native core. The classes
below are a second, independent reading of such declarations in plain Python, from the raw statistics of the intervals,
which the tests compare with the core over whole episodes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ccgym.errors import ConfigError

CONFIGS: Final = {"v1": "eagle_v1", "v2": "eagle_v2", "v3": "eagle"}
"""The configurations by version."""

# --- What is known ---------------------------------------------------------------------------------------------------

STARTUP_GAIN: Final = 2 / math.log(2)
"""BBR's gain in start-up; the expert's, 2.89, is this rounded."""
PROBE_GAINS: Final = (1.25, 0.75, 1.0)
"""BBR's gains afterward: more, less, and six times the same."""
EPISODE_STEPS: Final = 60
"""Read from the model name ``60spe_bs_5_pc_70``: steps per episode …"""
BATCH_EPISODES: Final = 5
"""… episodes per batch …"""
ELITE_PERCENTILE: Final = 70
"""… and the percentile of the elites."""

# --- The declarations in Python --------------------------------------------------------------------------------------

_CALL: Final = re.compile(r"(\w+)\((\w+),\s*(\d+)\)")
_FUNCTIONS: Final[dict[str, Callable[[list[float]], float]]] = {
    "mean": lambda values: sum(values) / len(values),
    "max": max,
    "min": min,
    "sum": sum,
}


class Phases:
    """Start-up, drain and probing, told from delivery rates, losses and queues; intervals in silence say nothing."""

    FULL_LOSS: Final = 0.2
    QUEUED: Final = 1 / 8

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self.spec = spec
        self.name = "startup"
        self._rates: list[float] = []
        self._full = 0.0
        self._count = 0
        self._rises = 0

    def update(self, now: Mapping[str, float]) -> None:
        """An interval ended: its signals, with ``in_flight_bytes``."""
        spec = self.spec
        if not now["acked_packets"]:
            return
        self._rates = [*self._rates, now["delivery_rate"]][-spec["window"] :]
        fastest = max(self._rates)
        clear = now["mean_rtt"] <= (1 + self.QUEUED) * now["min_rtt"]
        if self.name == "startup":
            grew = fastest >= (1 + spec["growth"]) * self._full
            self._count = 0 if grew else self._count + 1
            self._full = fastest if grew else self._full
            part = spec.get("exit_queue")
            queued = part is not None and now["mean_rtt"] > (1 + part) * now["min_rtt"]
            overflows = queued or now["loss_fraction"] > self.FULL_LOSS
            if self._count >= spec["plateau_steps"] or (self._count > 0 and overflows):
                self.name, self._count = "drain", 0
        elif self.name == "drain":
            self._count += 1
            drained = now["in_flight_bytes"] <= fastest * now["min_rtt"] / 8 or clear
            if drained or self._count >= spec["window"]:
                self.name, self._full, self._rises = "probe", fastest, 0
        else:
            self._full = min(self._full, fastest)
            rose = clear and fastest >= (1 + spec["reenter_growth"]) * self._full
            self._rises = self._rises + 1 if rose else 0
            if self._rises >= spec["reenter_steps"]:
                self.name, self._full, self._count = "startup", fastest, 0


class GainSchedule:
    """The expert: BBR's gains on the max delivery rate of the latest intervals in which something arrived."""

    TRIMMED: Final = 0.95
    """What the gain 1 may become while more than the bandwidth-delay product is in flight."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self.spec = spec
        self._rates: list[float] = []
        self._phase = "startup"
        self._place = 0
        self._prolonged = False
        self._gain = float(spec["startup"])

    def update(self, now: Mapping[str, float], phase: str) -> None:
        """An interval ended, and this is the phase now."""
        if not now["acked_packets"]:
            return
        self._rates = [*self._rates, now["delivery_rate"]][-self.spec["window"] :]
        before, self._phase = self._phase, phase
        if phase != "probe":
            self._gain = float(self.spec[phase])
            return
        cycle = self.spec["cycle"]
        bdp = max(self._rates) * now["min_rtt"] / 8
        excess = now["in_flight_bytes"] / bdp - 1 if bdp > 0 else 0.0
        if before != "probe":
            self._place, self._prolonged = 0, False
        elif cycle[self._place] < 1 and excess > 0 and not self._prolonged:
            self._prolonged = True  # once: what the probe queued has not left
        else:
            self._place, self._prolonged = (self._place + 1) % len(cycle), False
        gain = cycle[self._place]
        if self._prolonged or gain == 1:
            gain = min(max(1 - excess, gain if self._prolonged else self.TRIMMED), 1.0)
        self._gain = float(gain)

    @property
    def rate(self) -> float:
        """What it aims at, bit/s; 0 before anything arrived."""
        return self._gain * max(self._rates, default=0.0)


class Reference:
    """Observation, decision and reward of one flow, from the raw statistics of its intervals (``info["interval"]``).

    It reads agents with discrete operations on a rate or a window: those of the configurations here, whatever numbers
    and features they have.

    Args:
        agent: The agent as the core takes it: ``AgentConfig.native()``.
        packet_bytes: Bytes of a packet on the wire.
    """

    def __init__(self, agent: Mapping[str, Any], packet_bytes: int = 1500) -> None:
        self.agent = agent
        self.packet_bits = 8 * packet_bytes
        self.phases = Phases(agent["phases"])
        expert = agent.get("expert")
        self.expert = GainSchedule(expert) if expert and expert["kind"] == "gain_schedule" else None
        self.steers_rate = agent["action"]["target"] == "rate"
        self.steered = 0.0
        """The rate in bit/s, or the window in packets, that was decided."""
        self.memory: list[dict[str, float]] = []
        """Signals of every interval so far."""
        self._values: list[float] = []
        self._action: int | None = agent["observation"].get("initial_action")

    # --- Seeing ---

    def digest(self, interval: Mapping[str, float]) -> None:
        """Take in an interval."""
        before = self.memory[-1] if self.memory else None
        seconds, packet = interval["duration_s"], self.packet_bits / 8
        # In the order of the core, whose last bit decides where rates are equal but for it.
        delivery = interval["acked_bytes"] * (8 / seconds)
        heard = math.isfinite(interval["mean_rtt_s"]) and interval["mean_rtt_s"] > 0
        settled = interval["acked_packets"] + interval["lost_packets"]
        now = {
            "duration": seconds,
            "sent_packets": interval["sent_packets"],
            "acked_packets": interval["acked_packets"],
            "lost_packets": interval["lost_packets"],
            "timeouts": interval["timeouts"],
            "send_rate": 8 * interval["sent_bytes"] / seconds,
            "delivery_rate": delivery,
            "max_delivery_rate": max(delivery, before["max_delivery_rate"] if before else 0.0),
            "loss_fraction": interval["lost_packets"] / settled if settled else 0.0,
            "mean_rtt": interval["mean_rtt_s"] if heard else (before["mean_rtt"] if before else 0.0),
            "min_rtt": interval["min_rtt_s"],
            "srtt": interval["srtt_s"],
            "in_flight": interval["in_flight_bytes"] / packet,
            "cwnd": interval["cwnd_bytes"] / packet,
            "pacing_rate": interval["pacing_rate_bps"],
            "rate" if self.steers_rate else "window": self.steered,
        }
        now["max_send_rate"] = max(now["send_rate"], before["max_send_rate"] if before else 0.0)
        now["queue_delay"] = now["mean_rtt"] - now["min_rtt"]
        now["bdp"] = now["min_rtt"] * now["max_delivery_rate"] / self.packet_bits
        now["in_flight_bytes"] = interval["in_flight_bytes"]
        self.phases.update(now)
        for name in ("startup", "drain", "probe"):
            now[f"phase_{name}"] = float(self.phases.name == name)
        if self.expert is not None:
            self.expert.update(now, self.phases.name)
        self.memory.append(now)
        self._values = [self._feature(spec) for spec in self._features()]

    def observation(self) -> list[float]:
        """What the agent sees of the latest interval; of a history, that is the end."""
        return [*self._values, *(float(choice == self._action) for choice in range(len(self.operations)))]

    def _features(self) -> Sequence[Mapping[str, Any]]:
        features: Sequence[Mapping[str, Any]] = self.agent["observation"]["features"]
        return features

    def _feature(self, spec: Mapping[str, Any]) -> float:
        """One number: signal, minus, over, logarithm, scale, bounds."""
        value = self._read(spec["signal"])
        if "minus" in spec:
            value -= self._read(spec["minus"])
        if "over" in spec:
            divisor = self._read(spec["over"])
            value = value / divisor if divisor else spec["when_undefined"]
        if spec["log"]:
            plus = spec["log"]["plus"] if isinstance(spec["log"], Mapping) else 1e-9
            value = math.log(plus + max(0.0, value))
        low, high = spec["clip"]
        return float(min(max(spec["scale"] * value, low), high))

    def _read(self, expression: str | float) -> float:
        """A number, a signal, or a function of a signal's latest values."""
        if isinstance(expression, (int, float)):
            return float(expression)
        call = _CALL.fullmatch(expression.strip())
        if call is None:
            return self.memory[-1][expression.strip()]
        function, signal, count = call[1], call[2], int(call[3])
        if function == "previous":
            return self.memory[max(len(self.memory) - 1 - count, 0)][signal]
        return _FUNCTIONS[function]([one[signal] for one in self.memory[-count:]])

    # --- Doing ---

    def act(self, action: int) -> float:
        """Decide; returns the rate in bit/s, or the window in packets."""
        self.steered = self._limited(self._moved(action))
        self._action = action
        return self.steered

    def most_in_flight(self) -> float:
        """The cap on the window that goes with a rate, packets; infinite without one."""
        cap = self.agent["action"].get("cwnd_cap")
        if not cap or not self.memory:
            return math.inf
        estimate = self._read(cap["estimate"]) * self.memory[-1]["min_rtt"] / self.packet_bits
        if estimate <= 0:
            return math.inf
        starting = self.phases.name == "startup" and cap.get("startup") is not None
        multiple = cap["startup"] if starting else cap["bdp"]
        return float(max(multiple * estimate + cap["packets"], self.agent["action"]["limits"]["window"][0]))

    def label(self) -> tuple[float, int]:
        """What the expert aims at, bit/s or packets, and the action whose result is nearest to it."""
        aim = self.expert.rate
        if not self.steers_rate:
            aim *= self.memory[-1]["min_rtt"] / self.packet_bits
        by_ratio = (self.agent["expert"].get("nearest") or ("log" if self.steers_rate else "linear")) == "log"
        return aim, self.nearest(aim, by_ratio=by_ratio)

    def nearest(self, wanted: float, *, by_ratio: bool = True) -> int:
        """The action whose result is nearest to what is wanted, by ratio or by difference."""
        wanted = self._limited(wanted)

        def apart(result: float) -> float:
            return abs(math.log(max(result, 1e-9) / wanted)) if by_ratio else abs(result - wanted)

        made = [self._moved(action) for action in range(len(self.operations))]
        # Where limits make results equal, what needs them least is taken.
        distances = [(apart(self._limited(one)), apart(one)) for one in made]
        closest = min(distance for distance, _ in distances)
        ties = [place for place, (distance, _) in enumerate(distances) if distance <= closest * (1 + 1e-9)]
        return min(ties, key=lambda place: distances[place][1])

    def at_floor(self) -> bool:
        """Whether what is steered is at its lower bound."""
        return self.steered <= self._limited(0.0) * (1 + 1e-9)

    @property
    def operations(self) -> Sequence[str]:
        """What the actions do, by index."""
        operations: Sequence[str] = self.agent["action"]["map"]["operations"]
        return operations

    def _moved(self, action: int) -> float:
        operation = self.operations[action]
        sign, number = operation[0], float(operation[1:])
        packet = self.packet_bits / self.memory[-1]["min_rtt"] if self.steers_rate else 1.0
        if sign in "*/":
            return self.steered * number if sign == "*" else self.steered / number
        return self.steered + (number if sign == "+" else -number) * packet

    def _limited(self, value: float) -> float:
        limits = self.agent["action"]["limits"]
        low, high = limits["rate" if self.steers_rate else "window"]
        if self.steers_rate:
            floor = limits["packets_per_min_rtt"] * self.packet_bits / self.memory[-1]["min_rtt"]
            low = min(max(floor, low), high)
        return float(min(max(value, low), high))

    # --- Reward ---

    def reward(self, link_rate_bps: float) -> float:
        """The reward of the latest interval on a link of this rate."""
        reward = self.agent["reward"]
        total = 0.0
        for term in reward["terms"]:
            if not term.get("phase") or self.phases.name in term["phase"]:
                total += term["weight"] * self._term(term, link_rate_bps)
        return float(reward["scale"] * total)

    def _term(self, term: Mapping[str, Any], link_rate_bps: float) -> float:
        now, kind = self.memory[-1], term["term"]
        if kind == "utilization":
            value = self._read(term["of"]) / link_rate_bps
        elif kind == "throughput":
            divisor = self._read(term["over"])
            value = self._read(term["of"]) / divisor if divisor else 0.0
        elif kind == "queue_delay":
            unit = {"s": 1.0, "ms": 1e-3, "min_rtt": now["min_rtt"]}[term["unit"]]
            value = now["queue_delay"] / unit if unit else 0.0
        elif kind == "loss":
            sent = term["of"] == "sent"
            value = now["lost_packets"] / now["sent_packets"] if sent and now["sent_packets"] else now["loss_fraction"]
        else:
            raise ConfigError(
                "unknown-kind",
                f"the reward term {kind!r}",
                expected="utilization, throughput, queue_delay or loss",
                where="agent.reward",
            )
        return min(value, term.get("max") or math.inf)
