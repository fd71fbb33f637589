"""From an experiment to its runs: conditions from sweeps, scenarios from conditions and draws, flows from scenarios.

A *condition* is a point of a sweep. Every run of a condition has its own random stream for its draws and its seed; all
schemes get the same stream. A *scenario* is a run without the tested scheme.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from ccgym.config.catalog import resolve_trace
from ccgym.config.distributions import read_distribution
from ccgym.config.path import NetworkPath
from ccgym.config.yaml_loader import Loaded
from ccgym.errors import CcgymError, ConfigError, UnitError, did_you_mean, located, shown
from ccgym.experiments import spec
from ccgym.experiments.draws import read_draw
from ccgym.experiments.metrics import Metric, read_metric
from ccgym.experiments.placeholders import SCHEME, Names, Quantity, substitute
from ccgym.experiments.training import TrainingRange
from ccgym.experiments.transfers import expanded
from ccgym.schemes.flow import FlowSpec, flow_spec
from ccgym.schemes.reading import parse_scheme
from ccgym.units import parse_positive_time

PATH: Final = "path"
"""Name of the parameter that selects one of several paths."""
DISTRIBUTION: Final = "distribution"
"""Key of a drawn path: ``{distribution: genet_rl3}``."""
TESTED: Final = f"${SCHEME}"
"""Placeholder of the tested scheme in a flow."""
MAX_CONDITIONS: Final = 10_000
"""Max number of conditions."""

Value = float | str


@dataclass(frozen=True)
class Scenario:
    """A run without the tested scheme."""

    path: NetworkPath
    flows: tuple[Mapping[str, Any], ...]
    """The flows, in the form of :func:`~ccgym.schemes.flow.flow_spec`; ``$scheme`` is the tested scheme."""
    duration_ns: int
    metrics: tuple[Metric, ...] = field(compare=False)
    """The metrics of the run."""

    @property
    def rates_and_delays(self) -> tuple[list[float], list[float]]:
        """All rates of the path's links over time in Mbit/s, and all one-way delays in ms."""
        rates = [
            rate / 1e6
            for link in self.path.data_links
            for rate in ([value for _, value in link.rate] if isinstance(link.rate, tuple) else [link.rate])
            if rate is not None
        ]
        return rates or [self.path.mean_rate_mbps], [float(rtt) / 2e6 for _, rtt in self.path.rtt_steps()]

    def flows_of(self, tested: Sequence[FlowSpec]) -> tuple[FlowSpec, ...]:
        """Return the flows with the tested scheme, or with its flows, inserted.

        Raises:
            ConfigError: A flow has options, and the tested scheme has several flows.
        """
        found: list[FlowSpec] = []
        for place, flow in enumerate(self.flows):
            where = f"flows[{place}]"
            if flow.get("scheme") != TESTED:
                found.append(flow_spec(flow, where))
            elif flow.keys() == {"scheme"}:
                found += tested
            elif len(tested) == 1:
                options = {key: value for key, value in flow.items() if key != "scheme"}
                params = {**tested[0].params, **options.pop("params", {})}
                found.append(flow_spec({"scheme": tested[0].scheme, "params": params, **options}, where))
            else:
                raise ConfigError(
                    "scheme-unsuitable",
                    f"{len(tested)} flows in place of a flow with options",
                    where=where,
                    expected="`scheme: $scheme` without options, or a tested scheme with one flow",
                )
        return tuple(found)


@dataclass(frozen=True)
class Condition:
    """A point of an experiment's sweep."""

    key: str
    """Name in files, unique within the experiment: ``owd=10ms,buffer=0.2bdp``."""
    at: Mapping[str, Value]
    """Coordinates for tables and figures; names of numbers contain the unit: ``owd_ms``."""
    written: Mapping[str, Any] = field(compare=False)
    """Coordinates as in the YAML: ``owd`` is ``"10ms"``."""
    _experiment: spec.ExperimentSpec = field(repr=False, compare=False)
    _part: spec.ScenarioSpec = field(repr=False, compare=False)
    _values: Mapping[str, Any] = field(repr=False, compare=False)
    _same: list[tuple[NetworkPath, tuple[Metric, ...]]] = field(
        default_factory=list, init=False, repr=False, compare=False
    )
    """Path and metrics of all runs, after the first run was made, if nothing is drawn."""

    def trained(self, on: TrainingRange | None) -> Condition:
        """Return the condition for a scheme with this training range; it differs only if the experiment uses it."""
        untrained = self._experiment.untrained
        if untrained is None:
            return self
        rate, owd = (untrained.rate[1], untrained.owd[1]) if on is None else on.maxima
        known = {"trained_rate": Quantity(float(rate), "rate"), "trained_owd": Quantity(float(owd), "time")}
        return replace(self, _values={**self._values, **known})

    def make(self, rng: np.random.Generator) -> Scenario:
        """Return the scenario of a run; the generator belongs to the run, and is the same for every scheme."""
        names = self._names()
        duration_ns = self._duration(names)
        for name, given in self._part.draw.items():
            names.define(name, read_draw(substitute(given, names)).value(rng, duration_ns))
        return self._scenario(names, rng)

    def bounds(self) -> tuple[Scenario, Scenario]:
        """Return the scenarios with all draws at their min, and at their max; for a :attr:`distribution`, two draws."""
        if not self._part.draw and not self.distribution:
            same = self.make(generator(0))
            return same, same
        made = []
        for which in (0, 1):
            names = self._names()
            self._duration(names)
            for name, given in self._part.draw.items():
                names.define(name, read_draw(substitute(given, names)).bound(which))
            made.append(self._scenario(names, generator(which if self.distribution else 0)))
        return made[0], made[1]

    @property
    def distribution(self) -> str:
        """Name of the distribution of the path; empty if the path is not drawn."""
        path = self._path
        return str(path[DISTRIBUTION]) if isinstance(path, Mapping) and path.keys() == {DISTRIBUTION} else ""

    @property
    def _path(self) -> Any:
        return self._part.path if self._part.paths is None else self._values[f"_{PATH}"]

    def _names(self) -> Names:
        return Names({**self._part.parameters, **self._values, "duration": self._part.duration})

    def _duration(self, names: Names) -> int:
        duration_ns = parse_positive_time(names["duration"])
        names.define("duration", Quantity(float(duration_ns), "time"))
        return duration_ns

    def _scenario(self, names: Names, rng: np.random.Generator) -> Scenario:
        if self._path is None:
            raise ConfigError("key-missing", "no path", where=PATH, expected="path or paths")
        duration_ns = parse_positive_time(substitute("$duration", names))
        if self._part.draw or self.distribution or not self._same:
            self._same[:] = [self._path_and_metrics(names, rng, duration_ns)]
        ((path, metrics),) = self._same
        with located("flows"):
            flows = tuple(expanded(substitute(self._part.flows, names), rng))
        return Scenario(path, flows, duration_ns, metrics)

    def _path_and_metrics(
        self, names: Names, rng: np.random.Generator, duration_ns: int
    ) -> tuple[NetworkPath, tuple[Metric, ...]]:
        with located(PATH):
            if self.distribution:
                path = read_distribution(self.distribution).sample(rng, duration_ns).path()
            else:
                path = NetworkPath.from_any(substitute(self._path, names))
        metrics = []
        for key, given in self._experiment.metrics.items():
            with located(f"metrics.{key}"):
                metrics.append(read_metric(key, substitute(given, names)))
        return path, tuple(metrics)


def conditions(experiment: spec.ExperimentSpec) -> list[Condition]:
    """Return all conditions of an experiment, scenario by scenario.

    Raises:
        ConfigError: A sweep cannot be read, or two conditions have the same name.
    """
    found: dict[str, Condition] = {}
    for name, part in experiment.parts().items():
        for condition in _conditions(experiment, name, part):
            if condition.key in found:
                raise ConfigError(
                    "duplicate",
                    f"two conditions with the name {shown(condition.key)}",
                    expected="conditions that differ in their swept values",
                    where=f"scenarios.{name}" if name else "sweep",
                )
            found[condition.key] = condition
    return list(found.values())


def _conditions(experiment: spec.ExperimentSpec, name: str, part: spec.ScenarioSpec) -> Iterator[Condition]:
    axes = [_axis(key, values) for key, values in part.sweep.items()]
    if part.paths is not None:
        axes.append(_paths(part.paths))
    total = int(np.prod([len(axis) for axis in axes]))
    if total > MAX_CONDITIONS:
        raise ConfigError("too-large", f"{total} conditions", expected=f"at most {MAX_CONDITIONS}", where="sweep")
    # Values with several units, such as a discipline and a limit of a queue, stay as they are written.
    forms: dict[str, set[str]] = {}
    for key, value in (pair for axis in axes for shown_at, _ in axis for pair in shown_at.items()):
        forms.setdefault(key, set()).add(coordinate(key, value)[0])
    # The first value of the sweep varies fastest.
    for points in itertools.product(*reversed(axes)):
        chosen = list(reversed(points))
        written = {key: value for shown_at, _ in chosen for key, value in shown_at.items()}
        values = {key: value for _, hidden in chosen for key, value in hidden.items()}
        key = ",".join(f"{parameter}={value}" for parameter, value in written.items()) or name or "all"
        condition = Condition(
            key=key,
            at=dict((k, str(v)) if len(forms[k]) > 1 else coordinate(k, v) for k, v in written.items())
            or ({"scenario": name} if name else {}),
            written=written,
            _experiment=experiment,
            _part=part,
            _values={**written, **values},
        )
        yield condition.trained(None)


_Point = tuple[dict[str, Any], dict[str, Any]]
"""Coordinates of a point on an axis, and other values that it sets."""


def _axis(key: str, values: Any) -> list[_Point]:
    """Return the points of one entry of a sweep."""
    names = [name.strip() for name in key.split(",")]
    if isinstance(values, Mapping):
        if len(names) > 1:
            raise ConfigError("wrong-type", shown(dict(values)), expected="lists of values", where=f"sweep.{key}")
        return [({key: label}, dict(inner)) for label, inner in values.items()]
    points: list[_Point] = []
    for value in values:
        row = list(value) if len(names) > 1 and isinstance(value, (list, tuple)) else [value]
        if len(row) != len(names):
            raise ConfigError("wrong-count", shown(value), expected=f"{len(names)} values: {key}", where=f"sweep.{key}")
        points.append((dict(zip(names, row, strict=True)), {}))
    if not points:
        raise ConfigError("wrong-count", "no value", expected="at least one", where=f"sweep.{key}")
    return points


def _paths(paths: Any) -> list[_Point]:
    if isinstance(paths, Mapping):
        return [({PATH: name}, {f"_{PATH}": path}) for name, path in paths.items()]
    return [({PATH: NetworkPath.from_any(path).name or str(path)}, {f"_{PATH}": path}) for path in paths]


def coordinate(key: str, value: Any) -> tuple[str, Value]:
    """Return name and value of a parameter in tables and figures: ``("owd_ms", 10.0)`` for ``owd: 10ms``."""
    if key == PATH:
        return key, str(value)
    try:
        unit, number = Quantity.read(value).coordinate()
    except UnitError:
        return key, str(value)
    return f"{key}_{unit}" if unit else key, number


def paths(experiments: Iterable[spec.ExperimentSpec]) -> Iterator[NetworkPath]:
    """Yield the paths of all conditions; if values are drawn, with all draws at their min and at their max."""
    for experiment in experiments:
        for condition in conditions(experiment):
            smallest, largest = condition.bounds()
            yield smallest.path
            if largest is not smallest:
                yield largest.path


def check(experiment: spec.ExperimentSpec, loaded: Loaded) -> None:
    """Expand an experiment once, so that mistakes are found before any run.

    Raises:
        ConfigError: The experiment has a mistake; with file and line.
        PlatformError: The experiment is optional, and a trace is not on this machine.
    """
    try:
        found = conditions(experiment)
        for condition in found:
            smallest, _ = condition.bounds()
            for name in smallest.path.trace_names() if experiment.optional else ():
                resolve_trace(name)
        _check_criteria(experiment, found)
        if experiment.games is not None:
            _check_games(experiment.games, experiment.metrics)
    except CcgymError as error:
        place = error.where.partition(":")[0]
        steps = tuple(
            int(one) if one.isdecimal() else one for one in place.replace("[", ".").replace("]", "").split(".")
        )
        line = loaded.where(steps).partition(": ")[0]
        raise error.at(line) from None


def _check_criteria(experiment: spec.ExperimentSpec, found: Sequence[Condition]) -> None:
    parameters = dict.fromkeys(key for condition in found for key in condition.written)
    for place, criterion in enumerate(experiment.criteria):
        where = f"criteria[{place}]"
        for name in criterion.schemes:
            parse_scheme(name, f"{where}.schemes")
        _check_names(criterion.metrics, experiment.metrics, where)
        at_references = (key for reference in criterion.references for key in reference.where)
        _check_names((*criterion.split, *criterion.where, *at_references), parameters, where)


def _check_games(games: spec.Games, metrics: Mapping[str, Any]) -> None:
    _check_names(games.metrics, metrics, "games")
    if games.published is not None:
        for name in (*games.published.participants, *games.published.rates, *games.published.instead):
            parse_scheme(name, "games.published")


def _check_names(used: Iterable[str], known: Mapping[str, Any], where: str) -> None:
    for name in used:
        if name not in known:
            raise ConfigError(
                "unknown-name", shown(name), expected=", ".join(known), hint=did_you_mean(name, known), where=where
            )


def run_seed(root: int, experiment: str, condition: str, run: int) -> int:
    """Return the seed of a run: a function of root seed, experiment, condition and number, never of the scheme."""
    text = f"ccgym weakness\n{root}\n{experiment}\n{condition}\n{run}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator(seed: int) -> np.random.Generator:
    """Return the random stream of a run's draws."""
    return np.random.Generator(np.random.PCG64(seed))
