"""What has to be run: cells made of tests, schemes, conditions and repetitions; and running one."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ccgym.errors import ResultsError
from ccgym.evaluation.prepared_run import Record, prepare
from ccgym.evaluation.simulate import simulate_prepared
from ccgym.evaluation.weaknesses.base import Condition, Scenario, Series, Weakness
from ccgym.evaluation.weaknesses.sample import Sample
from ccgym.schemes.flow import FlowSpec
from ccgym.schemes.registry import SchemeChoice, check
from ccgym.units import NS_PER_MS, Nanoseconds

if TYPE_CHECKING:
    from ccgym import _core


@dataclass(frozen=True)
class RunResult:
    """What a run left."""

    condition: str
    """Key of its condition."""
    run: int
    """Its number, from 1."""
    seed: int
    """Root of its random streams."""
    values: Mapping[str, float]
    """By measure."""
    trajectory: str
    """Hash of everything that happened."""
    wall_s: float
    """How long it took, seconds."""
    series: Series | None = None
    """What figures show of it over time; of first runs only."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data; :meth:`from_dict` is the inverse."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RunResult:
        """The inverse of :meth:`as_dict`; raises :class:`ResultsError` where something is missing."""
        try:
            return cls(**data)
        except TypeError as error:
            raise ResultsError(f"the run is damaged: {error}", hint="run it again") from error


@dataclass(frozen=True)
class Cell:
    """One run of one scheme in one test, before it was run."""

    test: Weakness
    """The test."""
    choice: SchemeChoice
    """The scheme."""
    condition: Condition
    """The condition."""
    run: int
    """Number of the run, from 1."""
    seed: int
    """Root of its random streams: the same for every scheme."""
    scenario: Scenario = field(repr=False)
    """What is run."""

    @property
    def name(self) -> str:
        """Its name in messages: ``cubic_friendliness · aurora · owd=10ms,buffer=1bdp,cubic=first · run 2``."""
        return f"{self.test.name} · {self.choice.key} · {self.condition.key} · run {self.run}"

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that decides its outcome."""
        from ccgym import _core

        policy = self.choice.policy
        scheme = [self.choice.name if policy is None else policy.card.digest, dict(self.choice.settings)]
        identity = {
            "ccgym": _core.__version__,
            "test": [self.test.name, self.test.version],
            "path": self.scenario.path.model_dump(mode="json", include={"chain"}),
            "flows": [[flow.scheme, flow.start_ns, flow.stop_ns] for flow in self.scenario.flows],
            "duration": self.scenario.duration_ns,
            "step_ms": self.test.series_step_ms,
            "scheme": scheme,
            "seed": self.seed,
        }
        text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def execute(self, halt: _core.Halt | None = None) -> RunResult:
        """Run it, unless ``halt`` ends it.

        Raises:
            CcgymError: The run cannot be made, or failed.
        """
        clock = time.perf_counter()
        run = prepare(
            self.scenario.path,
            [_flow(self.choice, flow.scheme, flow.start_ns, flow.stop_ns) for flow in self.scenario.flows],
            Nanoseconds(self.scenario.duration_ns),
            self.seed,
            Record(packets=False, series=Nanoseconds(self.test.series_step_ms * NS_PER_MS)),
        )
        record = simulate_prepared(run, halt)
        sample = Sample.of(record)
        return RunResult(
            condition=self.condition.key,
            run=self.run,
            seed=self.seed,
            values={key: float(value) for key, value in self.test.measure(sample, self.scenario).items()},
            trajectory=record.trajectory_hash,
            wall_s=round(time.perf_counter() - clock, 4),
            series=self.test.series(sample, self.scenario) if self.run == 1 else None,
        )


def _flow(tested: SchemeChoice, scheme: str | None, start_ns: int, stop_ns: int | None) -> FlowSpec:
    choice = tested if scheme is None else SchemeChoice(scheme)
    times: dict[str, Any] = {"start": Nanoseconds(start_ns)}
    if stop_ns is not None:
        times["stop"] = Nanoseconds(stop_ns)
    return FlowSpec(scheme=choice.name, params=dict(choice.params), **times)


def cell_seed(root: int, test: Weakness, condition: Condition, run: int) -> int:
    """Seed of a repetition: a function of root seed, test, condition and number, never of the scheme."""
    text = f"ccgym weakness\n{root}\n{test.name}\n{condition.key}\n{run}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def cells_of(test: Weakness, schemes: Sequence[SchemeChoice], *, runs: int, seed: int, quick: bool) -> Iterator[Cell]:
    """All runs of a test: repetition by repetition, within it condition by condition, then scheme by scheme."""
    conditions = test.conditions(quick=quick)
    for run in range(1, runs * max(condition.repeat for condition in conditions) + 1):
        for condition in conditions:
            if run > runs * condition.repeat:
                continue
            own = cell_seed(seed, test, condition, run)
            scenario = condition.make(np.random.Generator(np.random.PCG64(own)))
            for choice in with_baseline(test, schemes):
                yield Cell(test, choice, condition, run, own, scenario)


def with_baseline(test: Weakness, schemes: Sequence[SchemeChoice]) -> list[SchemeChoice]:
    """The schemes, and the one that the test compares with where it is not among them."""
    if test.baseline is None or any(choice.key == test.baseline for choice in schemes):
        return list(schemes)
    return [*schemes, check(SchemeChoice(test.baseline))]
