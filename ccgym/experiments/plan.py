"""The planned runs of an experiment, and the data that is stored of each run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ccgym.errors import ConfigError
from ccgym.evaluation.backends import SIMULATED
from ccgym.evaluation.engine import Reduced, Reduction
from ccgym.evaluation.flags import lost_nothing
from ccgym.evaluation.prepared_run import Record
from ccgym.evaluation.run import Contender, Run, contender, digest
from ccgym.evaluation.run_record import RunRecord
from ccgym.experiments import detail
from ccgym.experiments.expand import Condition, Scenario, generator, run_seed
from ccgym.experiments.metrics import Measured, metric_kind
from ccgym.experiments.outcome import Test
from ccgym.experiments.training import TrainingRange, training_range
from ccgym.units import Nanoseconds

SERIES_VERSION: Final = 3
"""Version of stored series: it rises when they change; older runs are then run again."""


@dataclass(frozen=True)
class PlannedRun:
    """One planned run of one scheme in an experiment."""

    tested: Contender
    condition: Condition
    number: int
    """Number of the run, from 1."""
    scenario: Scenario = field(repr=False)
    """Scenario of the run; the same for every scheme."""
    run: Run = field(repr=False)
    alone: Mapping[int, Run] = field(default_factory=dict, repr=False)
    """Runs of single flows alone, by number of the flow, for metrics that compare with them."""

    @property
    def runs(self) -> tuple[Run, ...]:
        """All required runs: the run and the runs of single flows."""
        return (self.run, *self.alone.values())


def planned(
    test: Test, schemes: Sequence[Contender], *, runs: int | None, seed: int, backend: str = SIMULATED
) -> list[PlannedRun]:
    """Return all runs of an experiment: by repetition, within it by condition, within it by scheme.

    Args:
        test: The experiment.
        schemes: The tested schemes; the schemes that criteria compare with are run, too.
        runs: Number of repetitions; None: the number of the experiment.
        seed: Root of every random stream.
        backend: Name of the backend.
    """
    needs_packets = any(metric.needs_packets for metric in test.metrics)
    record = Record(packets=needs_packets, series=Nanoseconds(test.spec.sampling))
    baselines = [contender(name, "criteria") for name in test.spec.baselines]
    together = {one.key: one for one in (*schemes, *baselines)}.values()
    taking_part = {one.key: (one, training_range(one)) for one in together if takes_part(test, one)}.values()
    found = []
    for number in range(1, (runs or test.spec.runs) * test.spec.draws + 1):
        for condition in test.conditions:
            own = run_seed(seed, test.name, condition.key, number)
            scenarios: dict[TrainingRange | None, Scenario] = {}
            for tested, trained in taking_part:
                depends = trained if test.spec.untrained else None
                if depends not in scenarios:
                    scenarios[depends] = condition.trained(depends).make(generator(own))
                scenario = scenarios[depends]
                run = Run(
                    path=scenario.path,
                    contender=tested.with_flows(scenario.flows_of(tested.flows)),
                    duration_ns=scenario.duration_ns,
                    seed=own,
                    record=record,
                    backend=backend,
                    name=f"{test.name} · {tested.key} · {condition.key} · run {number}",
                    number=number,
                )
                found.append(PlannedRun(tested, condition, number, scenario, run, _alone(run, scenario)))
    return found


def _alone(run: Run, scenario: Scenario) -> dict[int, Run]:
    """Return the runs of single flows that metrics need: over the same path, with the same seed and start times."""
    flows = run.contender.flows
    numbers = dict.fromkeys(one.alone for one in scenario.metrics if one.alone is not None)
    if any(number > len(flows) for number in numbers):
        raise ConfigError(
            "out-of-range", f"flows {list(numbers)}", expected=f"numbers from 1 to {len(flows)}", where="metrics"
        )
    return {
        number: replace(
            run,
            contender=run.contender.with_flows(flows[number - 1 : number]),
            name=f"{run.name} · flow {number} alone",
        )
        for number in numbers
    }


def reduction(test: Test, plan: Sequence[PlannedRun]) -> Reduction:
    """Return the reduction of a run to its metrics and, for first runs, its series, tables and flows over time."""
    scenarios = {one.run.digest: (one.scenario, one.scenario.metrics) for one in plan}
    for one in plan:
        for number, run in one.alone.items():
            wanted = tuple(metric for metric in one.scenario.metrics if metric.alone == number)
            scenarios[run.digest] = (one.scenario, wanted)
    versions = [metric_kind(str(given.get("metric", key))).version for key, given in test.spec.metrics.items()]
    # All that affects the numbers, apart from the run; without sweeps, so that --quick and full calls share runs.
    parameters = {name: part.parameters for name, part in test.spec.parts().items()}
    series = test.spec.series and [test.spec.series, SERIES_VERSION]
    named = digest([test.spec.metrics, parameters, series, versions])
    pages = test.spec.games is None  # leagues have thousands of runs, and no page for each

    def reduce(run: Run, record: RunRecord) -> Any:
        scenario, wanted = scenarios[run.digest]
        measured = Measured(scenario.path, record, run.contender.flows)
        values = {metric.key: metric.of(measured) for metric in wanted}
        first = run.number == 1
        data = {
            "values": {key: None if value is None else float(value) for key, value in values.items()},
            "series": measured.sample.series(test.spec.series / 1e9) if first and test.spec.series else None,
            "detail": detail.detail(run, record) if first and pages else None,
            "backlog": lost_nothing(record, scenario.path.loss),
        }
        return Reduced(data, detail.series(run, record)) if first and pages else data

    return Reduction(f"metrics-{named[:16]}", 2 + (detail.VERSION if pages else 1), reduce)


def takes_part(test: Test, tested: Contender) -> bool:
    """Return whether a scheme takes part: experiments for learned policies have only these; experiments with TCP flows
    have no schemes that follow a video encoder, since these use UDP."""
    own = tested.choice
    if own is None:
        return not test.spec.learned_only
    if test.spec.learned_only:
        return own.policy is not None
    flows = (flow for part in test.spec.parts().values() for flow in part.flows)
    over_tcp = any(flow.get("profile") == "tcp" and str(flow["scheme"]).startswith("$") for flow in flows)
    return not (over_tcp and own.transport.get("source") == {"kind": "media"})
