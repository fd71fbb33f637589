"""A small Remy: trains the rule table of ``taova`` on the simulator.

    python tools/remy.py schemes/src/taova/ours.dna --rounds 40

The objective is that of Remy (Winstein and Balakrishnan, SIGCOMM 2013): the mean over senders of
log(throughput) − log(delay), over networks drawn once from the range that the table is for (Sivaraman et al., SIGCOMM
2014): link rates from 3.2 to 320 Mbit/s, uniform in the logarithm, 150 ms of round trip, a drop-tail queue of five
times their product, one or two senders that are on and off for a second in the mean.

It starts from a grid: the first acknowledgement, and cells by the gap between arrivals and the ratio of round trips,
with actions that follow the gap. The first rounds move the actions of all rules of one ratio together. Each later round
takes the rule that is used most among those with the fewest visits, and searches around its action (multiple,
increment, gap) for as long as that helps; from the second visit on it also divides the rule's domain where that helps.
The same arguments give the same table on every machine. After each round the state is in ``TABLE.json``; the same
command goes on from there.

Written are the table, in the format of Remy's ``dna`` files, and a listing, ``TABLE`` with the suffix ``.txt``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import struct
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ccgym.config.path import NetworkPath
from ccgym.evaluation.run_record import RunRecord
from ccgym.evaluation.simulate import Job, Record, simulate_many
from ccgym.files import atomic_write

AXES: Final = ("send_ewma", "rec_ewma", "rtt_ratio", "slow_rec_ewma")
RECEIVED, RATIO = 1, 2
SPACE: Final = 163_840.0
"""Upper bound of every axis."""

SLOWEST_MBPS: Final = 3.2
RANGE: Final = 100.0
RTT_MS: Final = 150.0
PACKET_BITS: Final = 1468 * 8
"""On the wire, as taova sends them."""

GAPS_MS: Final = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
RATIOS: Final = (0.5, 1.05, 1.25)
"""Bounds of the cells that a search starts from; below the first ratio lies the first acknowledgement alone."""

LITTLE: Final = 0.0005
"""A change that gains less is not worth its noise."""
FEWEST: Final = 0.02
"""A division leaves each side at least this share of the rule's uses."""

NEVER: Final = 2**64 - 1
Point = tuple[float, float, float, float]


@dataclass(frozen=True)
class Rule:
    """An action and the box of memories that it is for."""

    lower: Point
    upper: Point
    increment: int
    multiple: float
    gap_ms: float
    visits: int = 0

    def moves(self, step: float) -> Iterator[Rule]:
        """Rules around this one; ``step`` from 1 (far) to 0 (near)."""
        factor = 1.05 + 0.45 * step
        for change in (factor, 1 / factor):
            yield replace(self, gap_ms=round(self.gap_ms * change, 4))
            yield replace(self, increment=max(0, min(256, round(self.increment * change + (change - 1) / 0.45))))
            rest = (1.0 - self.multiple) * change  # the window that it settles at is increment/rest
            yield replace(self, multiple=round(min(1.0, max(0.0, 1.0 - rest)), 4))
            # The same window, approached faster or more slowly.
            both = max(0, min(256, round(self.increment * change)))
            yield replace(self, increment=both, multiple=round(min(1.0, max(0.0, 1.0 - rest)), 4))

    def divided(self, axis: int, at: float) -> tuple[Rule, Rule]:
        """Two rules that share its box."""
        upper, lower = list(self.upper), list(self.lower)
        upper[axis] = lower[axis] = at
        return replace(self, upper=_point(upper)), replace(self, lower=_point(lower))

    def holds(self, points: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """Which memories it is for."""
        inside: npt.NDArray[np.bool_] = np.all((points >= self.lower) & (points < self.upper), axis=1)
        return inside


@dataclass
class State:
    """Where a search is."""

    rules: list[Rule]
    """In the order of the leaves of :attr:`tree`."""
    tree: Any
    """Nested: ``[[lower, upper], children]``, and at the leaves the number of a rule."""
    round: int = 0
    score: float = -math.inf
    history: list[float] = field(default_factory=list)


def _point(values: Sequence[float]) -> Point:
    return (values[0], values[1], values[2], values[3])


def start() -> State:
    """A grid whose actions follow the measured gap: faster without a queue, slower with one."""
    ratios = (0.0, *RATIOS, SPACE)
    gaps = (0.0, *GAPS_MS, SPACE)
    rules = [Rule((0.0,) * 4, (SPACE, SPACE, RATIOS[0], SPACE), 60, 0.01, 0.3)]
    children: list[Any] = [0]
    for least, most, pace in zip(ratios[1:], ratios[2:], (0.8, 1.0, 1.4), strict=False):
        cells: list[Any] = []
        for shortest, longest in itertools.pairwise(gaps):
            middle = math.sqrt(max(shortest, GAPS_MS[0] / 2) * min(longest, 2 * GAPS_MS[-1]))
            window = RTT_MS / (middle * pace)
            lower, upper = (0.0, shortest, least, 0.0), (SPACE, longest, most, SPACE)
            increment = max(1, min(256, round(window / 10)))
            multiple = round(max(0.0, 1.0 - increment / window), 4)
            cells.append(len(rules))
            rules.append(Rule(lower, upper, increment, multiple, round(middle * pace, 4)))
        children.append([[[0.0, 0.0, least, 0.0], [SPACE, SPACE, most, SPACE]], cells])
    return State(rules, [[[0.0] * 4, [SPACE] * 4], children])


# ---- the file -------------------------------------------------------------------------------------------------


def _varint(number: int) -> bytes:
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def _double(number: int, value: float) -> bytes:
    return _varint(number << 3 | 1) + struct.pack("<d", value)


def _message(number: int, body: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(body)) + body


def _domain(number: int, lower: Sequence[float], upper: Sequence[float]) -> bytes:
    # Fields 21 to 24 are send, receive, ratio and slow receive, the order of AXES.
    bounds = (b"".join(_double(21 + axis, value) for axis, value in enumerate(bound)) for bound in (lower, upper))
    return _message(number, b"".join(_message(11 + place, bound) for place, bound in enumerate(bounds)))


def encode(tree: Any, rules: Sequence[Rule]) -> bytes:
    """A table as Remy writes it (``dna.proto``: WhiskerTree)."""
    if isinstance(tree, int):
        rule = rules[tree]
        domain = (rule.lower, rule.upper)
        action = _varint(31 << 3) + _varint(rule.increment << 1)
        action += _double(32, rule.multiple) + _double(33, rule.gap_ms) + _domain(34, *domain)
        return _domain(1, *domain) + _message(3, action)
    (lower, upper), children = tree
    return _domain(1, lower, upper) + b"".join(_message(2, encode(child, rules)) for child in children)


def listing(state: State, command: str) -> str:
    """The table as text."""
    lines = [f"# {command}", f"# round {state.round}, score {state.score:.4f}, {len(state.rules)} rules", ""]
    for number, rule in enumerate(state.rules):
        bounds = (
            f"{low:g} <= {name}" + ("" if high == SPACE else f" < {high:g}")
            for name, low, high in zip(AXES, rule.lower, rule.upper, strict=True)
            if low > 0 or high < SPACE
        )
        action = f"W = {rule.multiple:g} W + {rule.increment}, gap {rule.gap_ms:g} ms"
        lines.append(f"{number:3}  {action:36}  {', '.join(bounds)}")
    return "\n".join(lines) + "\n"


# ---- measuring ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Network:
    """One that senders are judged on."""

    path: NetworkPath
    senders: int
    seed: int


class Judge:
    """Scores tables, and other schemes, on networks drawn from a seed."""

    def __init__(self, count: int, seconds: int, seed: int) -> None:
        chance = random.Random(f"ccgym remy {seed}")
        self.seconds = seconds
        self.networks = [
            Network(
                NetworkPath(
                    rate=f"{SLOWEST_MBPS * RANGE ** ((place + chance.random()) / count):.4f}mbps",
                    rtt=f"{RTT_MS:g}ms",
                    queue="5bdp",
                ),
                1 + place % 4 // 2,
                chance.getrandbits(32),
            )
            for place in range(count)
        ]

    def _jobs(self, flow: dict[str, Any]) -> list[Job]:
        source = {"kind": "on_off", "mean_on": "1s", "mean_off": "1s"}
        flows = [{**flow, "source": source}]
        return [Job(one.path, flows * one.senders, f"{self.seconds}s", one.seed) for one in self.networks]

    def scores(self, flows: Sequence[dict[str, Any]]) -> list[float]:
        """The score of each kind of sender: mean of log(Mbit/s) − log(ms)."""
        jobs = [job for flow in flows for job in self._jobs(flow)]
        runs = simulate_many(jobs, record=Record(packets=False, series="0s"))
        count = len(self.networks)
        each = (runs[first : first + count] for first in range(0, len(runs), count))
        return [float(np.mean([score for run in some for score in senders(run)])) for some in each]

    def memories(self, flow: dict[str, Any]) -> npt.NDArray[np.float64]:
        """What senders remembered whenever they looked up a rule, from the logs of packets."""
        record = Record(packets=True, series="0s")
        points: list[Point] = []
        # Every other network: neighbors use the same rules.
        for run in simulate_many(self._jobs(flow)[::2], record=record, keep=True):
            assert run.native is not None
            data, acks = run.native.packets("data"), run.native.packets("ack")
            for number in range(len(run.flows)):
                mine = data["flow"] == number
                back = acks["left_ns"][acks["flow"] == number]
                points += remembered(data["entered_ns"][mine], data["left_ns"][mine], back)
        return np.array(points)


def senders(run: RunRecord) -> list[float]:
    """Scores of the senders of a run. Throughput is over the whole run: the times on and off are the same for all."""
    delay = RTT_MS + run.link.mean_queue_delay_ms
    received = (flow["received_unique_bytes"] for flow in run.counters["flows"])
    return [math.log(max(bytes_, 1) * 8e-6 / run.duration_s) - math.log(delay) for bytes_ in received]


def remembered(
    sent: npt.NDArray[np.uint64], arrived: npt.NDArray[np.uint64], back: npt.NDArray[np.uint64]
) -> list[Point]:
    """The memory after each acknowledgement of a flow, milliseconds: a second reading of its rules.

    Each packet that arrived has one acknowledgement, in the same order. A packet that leaves when nothing is out begins
    anew.
    """
    points: list[Point] = []
    send = received = slow = 0.0
    before: tuple[int, float, float] | None = None
    least = math.inf
    last_back = -1.0
    places = np.flatnonzero(arrived != NEVER)[: len(back)]
    for place, came_back in zip(places.tolist(), back.tolist(), strict=True):
        if came_back == NEVER:
            break
        out, there, now = sent[place] / 1e6, arrived[place] / 1e6, came_back / 1e6
        if out > last_back > 0:
            before, send, received, slow, least = None, 0.0, 0.0, 0.0, math.inf
        ratio = 0.0
        least = min(least, now - out)
        if before is None:
            before = (place, out, there)
        else:
            if place == before[0] + 1:
                send += (out - before[1] - send) / 8
                received += (there - before[2] - received) / 8
                slow += (there - before[2] - slow) / 256
                before = (place, out, there)
            else:
                before = (place, before[1], before[2])
            ratio = (now - out) / least
        points.append((send, received, ratio, slow))
        last_back = now
    return points


# ---- the search -----------------------------------------------------------------------------------------------


class Search:
    """Improves a table."""

    def __init__(self, judge: Judge, state: State, folder: Path) -> None:
        self.judge = judge
        self.state = state
        self._folder = folder

    def flow(self, number: int, tree: Any, rules: Sequence[Rule]) -> dict[str, Any]:
        """A flow that follows a table."""
        file = self._folder / f"{number}.dna"
        file.write_bytes(encode(tree, rules))
        return {"scheme": "taova", "params": {"table": str(file)}}

    def best(self, candidates: Sequence[tuple[Any, list[Rule]]]) -> tuple[int, float]:
        """Number and score of the best table."""
        scores = self.judge.scores([self.flow(i, tree, rules) for i, (tree, rules) in enumerate(candidates)])
        place = int(np.argmax(scores))
        return place, scores[place]

    def round(self) -> None:
        """Improve a row of the grid; then the most used of the rules that were visited least, and divide it."""
        state = self.state
        if state.score == -math.inf:
            state.score = self.best([(state.tree, state.rules)])[1]
        if state.round <= len(RATIOS):
            least = (0.0, *RATIOS)[state.round]
            self._improve([n for n, rule in enumerate(state.rules) if rule.lower[RATIO] == least])
        else:
            self._visit()
        state.round += 1
        state.history.append(state.score)

    def _visit(self) -> None:
        state = self.state
        points = self.judge.memories(self.flow(0, state.tree, state.rules))
        held = [rule.holds(points) for rule in state.rules]
        # A rule that is hardly ever used changes nothing.
        used = [n for n, mask in enumerate(held) if mask.sum() >= max(1, FEWEST * len(points) / len(held))]
        number = min(used, key=lambda n: (state.rules[n].visits, -int(held[n].sum())))
        self._improve([number])
        if state.rules[number].visits > 0:
            self._divide(number, points[held[number]])
        state.rules[number] = replace(state.rules[number], visits=state.rules[number].visits + 1)

    def _improve(self, numbers: Sequence[int]) -> None:
        """Move the actions of some rules together, for as long as that helps."""
        state, step = self.state, 1.0
        while step > 0.2:
            moved = zip(*(state.rules[number].moves(step) for number in numbers), strict=True)
            candidates = [(state.tree, _with(state.rules, dict(zip(numbers, rules, strict=True)))) for rules in moved]
            place, score = self.best(candidates)
            if score > state.score + LITTLE:
                state.score, state.rules = score, candidates[place][1]
            else:
                step /= 3

    def _divide(self, number: int, points: npt.NDArray[np.float64]) -> None:
        """Divide a rule at its median memory, on the axis where a move of one side gains most."""
        state = self.state
        rule = state.rules[number]
        candidates = []
        for axis in range(4):
            at = float(f"{np.median(points[:, axis]):.4g}")
            share = float((points[:, axis] < at).mean())
            if not FEWEST < share < 1 - FEWEST or not rule.lower[axis] < at < rule.upper[axis]:
                continue
            halves = rule.divided(axis, at)
            tree = _branched(state.tree, number, [[list(rule.lower), list(rule.upper)], [number, len(state.rules)]])
            for side in (0, 1):
                for moved in halves[side].moves(1.0):
                    pair = (moved, halves[1]) if side == 0 else (halves[0], moved)
                    candidates.append((tree, [*_with(state.rules, {number: pair[0]}), pair[1]]))
        if not candidates:
            return
        place, score = self.best(candidates)
        if score > state.score + LITTLE:
            state.score = score
            state.tree, state.rules = candidates[place]


def _with(rules: Sequence[Rule], changed: dict[int, Rule]) -> list[Rule]:
    return [changed.get(place, one) for place, one in enumerate(rules)]


def _branched(tree: Any, number: int, branch: Any) -> Any:
    if isinstance(tree, int):
        return branch if tree == number else tree
    domain, children = tree
    return [domain, [_branched(child, number, branch) for child in children]]


def load(file: Path) -> State:
    """A state that an earlier run left, or the start."""
    if not file.exists():
        return start()
    data = json.loads(file.read_text())
    rules = [Rule(**{**one, "lower": _point(one["lower"]), "upper": _point(one["upper"])}) for one in data.pop("rules")]
    return State(rules=rules, **data)


def main() -> None:
    """Train, from the command line."""
    parser = argparse.ArgumentParser(description="Train the rule table of taova on the simulator.")
    parser.add_argument("table", type=Path, help="where the table goes; TABLE.json next to it holds the state")
    parser.add_argument("--rounds", type=int, default=40, help="rounds in all (default: %(default)s)")
    parser.add_argument("--networks", type=int, default=16, help="networks that tables are judged on")
    parser.add_argument("--seconds", type=int, default=8, help="length of each simulation")
    parser.add_argument("--seed", type=int, default=1, help="root of what is drawn")
    given = parser.parse_args()
    options = f"--networks {given.networks} --seconds {given.seconds} --seed {given.seed}"
    checkpoint = given.table.with_name(given.table.name + ".json")
    judge = Judge(given.networks, given.seconds, given.seed)
    fresh = Judge(100, given.seconds, given.seed + 1)
    print(f"cubic on these networks: {judge.scores([{'scheme': 'cubic'}])[0]:.4f}", flush=True)
    with tempfile.TemporaryDirectory(prefix="remy-") as folder:
        search = Search(judge, load(checkpoint), Path(folder))
        while search.state.round < given.rounds:
            began = time.monotonic()
            search.round()
            state = search.state
            atomic_write(checkpoint, json.dumps(asdict(state)))
            atomic_write(given.table, encode(state.tree, state.rules))
            command = f"python tools/remy.py {given.table} --rounds {state.round} {options}"
            atomic_write(given.table.with_suffix(".txt"), listing(state, command))
            spent = time.monotonic() - began
            print(f"round {state.round}: score {state.score:.4f}, {len(state.rules)} rules, {spent:.0f} s", flush=True)
        state = search.state
        ours, cubic = fresh.scores([search.flow(0, state.tree, state.rules), {"scheme": "cubic"}])
        print(f"on 100 fresh networks: {ours:.4f}, cubic {cubic:.4f}")


if __name__ == "__main__":
    main()
