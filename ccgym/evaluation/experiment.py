"""An experiment: several schemes on one path, several runs each."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from ccgym.config.path import NetworkPath
from ccgym.errors import ConfigError
from ccgym.evaluation.backends import SIMULATED, check_name, is_real
from ccgym.schemes.flow import FlowSpec
from ccgym.schemes.kernel import refuse_in_virtual_time
from ccgym.schemes.registry import SchemeChoice, check, distinct, registry
from ccgym.units import Nanoseconds, format_time

LogsPolicy: TypeAlias = Literal["all", "first", "none"]
"""Of which runs packet logs are written: every run, the first run of each scheme, or none."""

LOGS_POLICIES: Final[tuple[LogsPolicy, ...]] = ("all", "first", "none")

MAX_RUNS: Final = 10_000
"""Most runs per scheme."""

MAX_RUNTIME_NS: Final = 24 * 3600 * 1_000_000_000
"""Longest run time: a day. Pantheon allows a minute; virtual time is cheaper."""


@dataclass(frozen=True)
class Cell:
    """One run of one scheme, before it was run."""

    choice: SchemeChoice
    """The scheme."""
    run: int
    """Number of the run, from 1."""
    seed: int
    """Root of its random streams."""

    @property
    def name(self) -> str:
        """Its name in files and messages: ``cubic_run1``."""
        return f"{self.choice.key}_run{self.run}"


@dataclass(frozen=True)
class Experiment:
    """What to run; everything that decides its outcome, and nothing else."""

    path: NetworkPath
    """The path; anything that :meth:`NetworkPath.from_any` understands becomes one."""
    schemes: tuple[SchemeChoice, ...]
    """The schemes, in the order of the table."""
    runs: int = 5
    """Runs per scheme."""
    runtime_ns: int = 30_000_000_000
    """Length of a run, nanoseconds; of virtual time, or of real time where packets are real."""
    flows: int = 1
    """Flows per run, all of the same scheme."""
    interval_ns: int = 0
    """Time between flow starts, nanoseconds."""
    seed: int = 1
    """Root of every random stream."""
    backend: str = SIMULATED
    """Where packets travel: ``sim``, ``emulated`` or ``mahimahi``."""
    late_start_ns: int = 0
    """Flows begin later than they should by up to so many nanoseconds, drawn from the seed of the run."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", NetworkPath.from_any(self.path))
        check_name(self.backend, "backend")
        _in_range("runs", self.runs, 1, MAX_RUNS)
        _in_range("flows", self.flows, 1, 1_000)
        _in_range("seed", self.seed, 0, 2**63 - 1)
        if not 0 < self.runtime_ns <= MAX_RUNTIME_NS:
            raise ConfigError(
                format_time(self.runtime_ns) if self.runtime_ns > 0 else f"{self.runtime_ns} ns",
                where="runtime",
                expected="more than 0 s and at most a day",
            )
        last_start = (self.flows - 1) * self.interval_ns
        if self.interval_ns < 0 or last_start >= self.runtime_ns:
            raise ConfigError(
                f"flow {self.flows} would start at {last_start / 1e9:g} s, the run ends at {self.runtime_ns / 1e9:g} s",
                where="interval",
                expected="(flows − 1) · interval below the run time",
                hint="the interval is the time between flow starts; lengthen the run or shorten the interval",
            )
        if not 0 <= self.late_start_ns < self.runtime_ns - last_start:
            raise ConfigError(
                f"flows up to {self.late_start_ns / 1e9:g} s late",
                where="late_start",
                expected="less than is left of the run",
            )
        if not self.schemes:
            raise ConfigError("no scheme", where="schemes", expected="at least one")
        checked = tuple(check(choice, "schemes") for choice in self.schemes)
        if not self.real:
            for choice in checked:
                refuse_in_virtual_time(choice.name, choice.kernel in registry(), "schemes")
            _refuse_unlimited(self.path, checked)
        object.__setattr__(self, "schemes", tuple(distinct(checked, "schemes")))

    @property
    def real(self) -> bool:
        """Whether packets are real: then a run takes as long as it says, and never repeats itself exactly."""
        return is_real(self.backend)

    def cells(self) -> Iterator[Cell]:
        """All runs, in Pantheon's order: run by run, and within a run scheme by scheme."""
        for run in range(1, self.runs + 1):
            for choice in self.schemes:
                yield Cell(choice, run, self.cell_seed(choice, run))

    def cell_seed(self, choice: SchemeChoice, run: int) -> int:
        """Seed of a run: a function of root seed, scheme and run number only, never of order or company."""
        digest = hashlib.sha256(f"ccgym cell\n{self.seed}\n{choice.seed_text}\n{run}".encode()).digest()
        return int.from_bytes(digest[:8], "big")

    def cell_flows(self, cell: Cell) -> list[FlowSpec]:
        """The flows of a run."""
        chance = random.Random(f"ccgym late start {cell.seed}")
        return [
            FlowSpec(
                scheme=cell.choice.name,
                params=dict(cell.choice.params),
                start=Nanoseconds(place * self.interval_ns + chance.randint(0, self.late_start_ns)),
            )
            for place in range(self.flows)
        ]

    def parameters(self) -> dict[str, Any]:
        """Everything that decides the outcome, as plain data: the identity of the experiment."""
        from ccgym import _core

        compiled = self.path.compile()
        # The version of a policy is part of what decides the outcome; its name and path are not.
        policies = {choice.key: choice.policy.card.digest for choice in self.schemes if choice.policy is not None}
        return {
            "ccgym": _core.__version__,
            "path_name": self.path_name,
            "path": {"uplink": compiled.uplink, "downlink": compiled.downlink},
            "traces": {name: _trace_digest(trace) for name, trace in sorted(compiled.traces.items())},
            "schemes": [choice.text for choice in self.schemes],
            **({"policies": policies} if policies else {}),
            "runs": self.runs,
            "runtime_s": self.runtime_ns / 1e9,
            "flows": self.flows,
            "interval_s": self.interval_ns / 1e9,
            "seed": self.seed,
            # Results of the simulator are older than the other backends: theirs say nothing.
            **({"backend": self.backend} if self.real else {}),
            **({"late_start_ms": self.late_start_ns / 1e6} if self.late_start_ns else {}),
        }

    @property
    def path_name(self) -> str:
        """A short name of the path, for titles."""
        return self.path.name or "unnamed path"


def _refuse_unlimited(path: NetworkPath, schemes: Sequence[SchemeChoice]) -> None:
    """Refuse a simulation in which nothing limits a flow."""
    known = registry()
    growing = [
        choice.title
        for choice in schemes
        if choice.policy is None and not known[choice.name]["capabilities"]["bounded"]
    ]
    if growing and not path.limits_flows:
        raise ConfigError(
            f"{', '.join(growing)} on a path without a link: nothing limits a greedy flow",
            where="path",
            expected="a link, whose rate does",
            hint="add one, as in 'mm-delay 20 mm-link 12mbps 12mbps'; or choose fixed_rate or fixed_window",
        )


def _in_range(where: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ConfigError(f"{value}", where=where, expected=f"a whole number from {low} to {high}")


def _trace_digest(trace: Any) -> str:
    return hashlib.sha256(trace.times_ms.tobytes()).hexdigest()


def parameters_hash(parameters: Mapping[str, Any]) -> str:
    """SHA-256 of the parameters in canonical JSON."""
    text = json.dumps(parameters, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def differences(old: Any, new: Any, place: str = "") -> list[str]:
    """What differs between two parameter sets, one line per place: ``runs: 5 there, 10 here``."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        lines = []
        for key in [*old, *(key for key in new if key not in old)]:
            inner = f"{place}.{key}" if place else str(key)
            if key not in old or key not in new:
                lines.append(f"{inner}: only {'here' if key in new else 'there'}")
            else:
                lines += differences(old[key], new[key], inner)
        return lines
    return [] if old == new else [f"{place}: {_short(old)} there, {_short(new)} here"]


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:79] + "…"
