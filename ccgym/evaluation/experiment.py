"""An experiment on one path: several contenders, several runs each."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from ccgym.config.hosts import hosts_of
from ccgym.config.path import NetworkPath
from ccgym.errors import ConfigError
from ccgym.evaluation.backends import REMOTE, SIMULATED, check_name, is_real
from ccgym.evaluation.prepared_run import MAX_MEMORY, Record
from ccgym.evaluation.run import Contender, Run, contenders, starting_at, trace_digests
from ccgym.schemes.flow import FlowSpec
from ccgym.schemes.python_classes import PythonScheme
from ccgym.schemes.quic import QuicScheme
from ccgym.units import format_time

LogsPolicy: TypeAlias = Literal["all", "first", "none"]
"""Runs with packet logs: every run, the first run of each scheme, or none."""

LOGS_POLICIES: Final[tuple[LogsPolicy, ...]] = ("all", "first", "none")

EDITABLE: Final = (PythonScheme, QuicScheme)
"""Schemes that users edit between runs."""

EDITED: Final = ("contenders", "policies")
"""Parameters that depend on the content of such schemes."""

MAX_RUNS: Final = 10_000
"""Maximum number of runs per scheme."""

MAX_SEED: Final = 2**63 - 1
"""Largest root seed."""

MAX_RUNTIME_NS: Final = 24 * 3600 * 1_000_000_000
"""Maximum run time: a day. Pantheon's maximum is a minute; virtual time is cheaper."""


@dataclass(frozen=True)
class Experiment:
    """Description of an experiment: exactly the parameters that decide its outcome."""

    path: NetworkPath
    """The path; any form that :meth:`NetworkPath.from_any` accepts is converted."""
    schemes: tuple[Contender, ...]
    """The contenders, in the order of the table; any form that :func:`~ccgym.evaluation.run.contender` accepts is
    converted."""
    runs: int = 5
    """Runs per scheme."""
    runtime_ns: int = 30_000_000_000
    """Length of a run, nanoseconds, in virtual time; with real packets, in real time."""
    flows: int = 1
    """Number of times that the flows of a contender are started in a run."""
    interval_ns: int = 0
    """Time between these starts, nanoseconds."""
    seed: int = 1
    """Root of every random stream."""
    backend: str = SIMULATED
    """The backend: ``sim``, ``emulated``, ``mahimahi`` or ``remote``."""
    late_start_ns: int = 0
    """Maximum delay of a flow's start, nanoseconds; the actual delay is drawn from the seed of the run."""
    random_order: bool = False
    """Whether the schemes run in random order, the same order for all run numbers, as in Pantheon. It is no part of the
    experiment's identity: runs do not depend on their order."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", NetworkPath.from_any(self.path))
        check_name(self.backend, "backend")
        if (self.backend == REMOTE) != (hosts_of(self.path) is not None):
            raise ConfigError(
                "backend-unsuitable",
                f"{self.path.name or 'a path'} with the backend {self.backend}",
                where="backend",
                expected="remote for the path between two machines, and another backend for any other path",
                hint="--remote HOST names the other machine",
            )
        check_range("runs", self.runs, 1, MAX_RUNS)
        check_range("flows", self.flows, 1, 1_000)
        check_range("seed", self.seed, 0, MAX_SEED)
        if not 0 < self.runtime_ns <= MAX_RUNTIME_NS:
            raise ConfigError(
                "out-of-range",
                format_time(self.runtime_ns) if self.runtime_ns > 0 else f"{self.runtime_ns} ns",
                where="runtime",
                expected="more than 0 s and at most a day",
            )
        last_start = (self.flows - 1) * self.interval_ns
        if self.interval_ns < 0 or last_start >= self.runtime_ns:
            raise ConfigError(
                "start-after-end",
                f"flow {self.flows} would start at {last_start / 1e9:g} s, the run ends at {self.runtime_ns / 1e9:g} s",
                where="interval",
                expected="(flows − 1) · interval below the run time",
                hint="the interval is the time between flow starts; lengthen the run or shorten the interval",
            )
        if not 0 <= self.late_start_ns < self.runtime_ns - last_start:
            raise ConfigError(
                "start-after-end",
                f"flows up to {self.late_start_ns / 1e9:g} s late",
                where="late_start",
                expected="less than the rest of the run",
            )
        object.__setattr__(self, "schemes", contenders(self.schemes, "schemes"))
        for one in self.schemes:
            latest = last_start + self.late_start_ns + max(flow.start_ns for flow in one.flows)
            if latest >= self.runtime_ns:
                raise ConfigError(
                    "start-after-end",
                    f"a flow of {one.text} would start at {latest / 1e9:g} s, the run ends at "
                    f"{self.runtime_ns / 1e9:g} s",
                    where="schemes",
                    expected="starts before the end of the run",
                )
            if not self.real:
                one.refuse("simulator", "schemes")
        if not self.real:
            _refuse_unlimited(self.path, self.schemes)

    @property
    def real(self) -> bool:
        """Whether packets are real: a run then takes its length in real time, and never repeats exactly."""
        return is_real(self.backend)

    def planned(self, logs: LogsPolicy | Collection[str] = "none", max_memory: str = MAX_MEMORY) -> list[Run]:
        """Return all runs in Pantheon's order: by run number, and for each number by scheme.

        Args:
            logs: The runs that record data for packet logs; also as names, such as ``cubic_run1``.
            max_memory: Memory limit of each simulation; see :class:`~ccgym.evaluation.prepared_run.Record`.
        """
        order = list(self.schemes)
        if self.random_order:
            random.Random(f"ccgym order {self.seed}").shuffle(order)
        kept = self.real and logs != "none"  # real packets cannot be repeated
        names = [(one, number, f"{one.key}_run{number}") for number in range(1, self.runs + 1) for one in order]
        return [
            self._run(one, number, name, with_logs=kept or logged(logs, name), max_memory=max_memory)
            for one, number, name in names
        ]

    def _run(self, one: Contender, number: int, name: str, *, with_logs: bool, max_memory: str) -> Run:
        seed = self.run_seed(one, number)
        return Run(
            path=self.path,
            contender=one.with_flows(self._flows(one, seed)),
            duration_ns=self.runtime_ns,
            seed=seed,
            record=Record(acks=with_logs, link_events=with_logs, max_memory=max_memory),
            backend=self.backend,
            name=name,
            number=number,
        )

    def run_seed(self, one: Contender, number: int) -> int:
        """Return the seed of a run. It depends only on root seed, scheme and number, not on order or other schemes."""
        digest = hashlib.sha256(f"ccgym cell\n{self.seed}\n{one.seed_text}\n{number}".encode()).digest()
        return int.from_bytes(digest[:8], "big")

    def _flows(self, one: Contender, seed: int) -> list[FlowSpec]:
        chance = random.Random(f"ccgym late start {seed}")
        return [
            starting_at(flow, flow.start_ns + place * self.interval_ns + chance.randint(0, self.late_start_ns))
            for place in range(self.flows)
            for flow in one.flows
        ]

    def parameters(self) -> dict[str, Any]:
        """Return all parameters that decide the outcome, as plain data: the identity of the experiment."""
        from ccgym import _core

        compiled, hosts = self.path.compile(), hosts_of(self.path)
        choices = [choice for one in self.schemes for choice in one.choices]
        versions = {choice.key: version for choice in choices if (version := choice.version) is not None}
        files = {choice.key: {name: file.digest for name, file in choice.files.items()} for choice in choices}
        files = {key: digests for key, digests in files.items() if digests}
        flows = {one.key: [flow.model_dump(mode="json") for flow in one.flows] for one in self.schemes}
        named = {one.key: flows[one.key] for one in self.schemes if one.choice is None}
        return {
            "ccgym": _core.__version__,
            "path_name": self.path_name,
            "path": {
                "uplink": compiled.uplink,
                "downlink": compiled.downlink,
                **({"links": compiled.links} if compiled.links else {}),
            },
            "traces": trace_digests(self.path),
            "schemes": [one.text for one in self.schemes],
            **({"contenders": named} if named else {}),
            **({"policies": versions} if versions else {}),
            **({"files": files} if files else {}),
            "runs": self.runs,
            "runtime_s": self.runtime_ns / 1e9,
            "flows": self.flows,
            "interval_s": self.interval_ns / 1e9,
            "seed": self.seed,
            # Simulator results from before the other backends have no such entry.
            **({"backend": self.backend} if self.real else {}),
            **({} if hosts is None else {"pantheon": hosts.identity}),
            **({"late_start_ms": self.late_start_ns / 1e6} if self.late_start_ns else {}),
        }

    def continues(self, there: Mapping[str, Any]) -> bool:
        """Return whether results with these parameters are of this experiment before the user edited Python classes or
        built their own QUIC controllers again.

        The content of these schemes is part of the digests of runs: old and new runs are never mixed.
        """
        here = json.loads(json.dumps(self.parameters()))
        choices = (choice for one in self.schemes for choice in one.choices if choice.version is not None)
        edited = {choice.key for choice in choices if isinstance(choice, EDITABLE)}

        def rest(parameters: Mapping[str, Any]) -> dict[str, Any]:
            return {name: value for name, value in parameters.items() if name not in EDITED}

        others = {key: version for key, version in here.get("policies", {}).items() if key not in edited}
        return (
            bool(edited)
            and rest(there) == rest(here)
            and len(there.get("policies", {})) == len(here.get("policies", {}))
            and others.items() <= there.get("policies", {}).items()
        )

    @property
    def path_name(self) -> str:
        """A short name of the path, for titles."""
        return self.path.name or "unnamed path"


def logged(logs: LogsPolicy | Collection[str], name: str) -> bool:
    """Return whether to write packet logs for a run with this name, such as ``cubic_run1``."""
    return (logs == "all" or (logs == "first" and name.endswith("_run1"))) if isinstance(logs, str) else name in logs


def _refuse_unlimited(path: NetworkPath, schemes: Sequence[Contender]) -> None:
    """Refuse a simulation in which nothing limits a flow."""
    if path.limits_flows:
        return
    growing = [choice.title for one in schemes for choice in one.choices if not choice.bounded]
    if growing:
        raise ConfigError(
            "path-without-link",
            f"{', '.join(growing)} on a path without a link: nothing limits a greedy flow",
            where="path",
            expected="a link: its rate limits the flow",
            hint="add a link, as in 'mm-delay 20 mm-link 12mbps 12mbps'; or choose fixed_rate or fixed_window",
        )


def check_range(where: str, value: int, low: int, high: int) -> None:
    """Raise :class:`ConfigError` unless a number is within its bounds; ``where`` is its name."""
    if not low <= value <= high:
        raise ConfigError("out-of-range", f"{value}", where=where, expected=f"a whole number from {low} to {high}")
