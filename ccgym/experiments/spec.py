"""Models of an experiment's YAML: paths, flows, sweeps and draws, metrics, criteria and figures.

Texts with placeholders are kept as written; :mod:`ccgym.experiments.expand` inserts the values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from ccgym.config.declared import Strict
from ccgym.config.quantities import PeriodField, RateField, TimeField
from ccgym.config.yaml_loader import config_error
from ccgym.errors import ConfigError, did_you_mean, shown
from ccgym.evaluation.experiment import MAX_RUNS
from ccgym.experiments.criterion_spec import CriterionSpec, Raw
from ccgym.units import NS_PER_MS


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return two mappings merged key by key; other values are replaced."""
    found = dict(base)
    for key, value in over.items():
        before = found.get(key)
        found[key] = merged(before, value) if isinstance(before, Mapping) and isinstance(value, Mapping) else value
    return found


class ScenarioSpec(Strict):
    """Conditions of one kind: varied values, the path, and the flows."""

    sweep: Mapping[str, Sequence[Raw] | Mapping[str, Mapping[str, Raw]]] = Field(default_factory=dict)
    """Varied values: ``{rate: [10mbps, 50mbps]}``; every combination is a condition. ``{order: {first: {a: 1},
    second: {a: 2}}}`` sets several values under one name; ``{"rate, owd": [[6mbps, 10ms], …]}`` varies them together.
    The first one varies fastest."""
    parameters: Mapping[str, Raw] = Field(default_factory=dict)
    """Values that do not vary, or depend on other values: ``{begin: $(0.8 * duration)}``."""
    draw: Mapping[str, Mapping[str, Raw]] = Field(default_factory=dict)
    """Random values, drawn for every run in this order: ``{owd: {uniform: [10ms, 100ms]}}``; see
    :mod:`ccgym.experiments.draws`."""
    path: Raw = None
    """The path: a name, a mahimahi command line or a mapping."""
    paths: Sequence[Raw] | Mapping[str, Raw] | None = None
    """Instead of ``path``: several paths, by name; they are the last value of the sweep, ``path``."""
    flows: Sequence[Mapping[str, Raw]] = ({"scheme": "$scheme"},)
    """The flows, as in ``simulate``; ``$scheme`` is the tested scheme."""
    duration: Raw = "30s"
    """Length of a run."""


class Untrained(Strict):
    """Range of rates and one-way delays for schemes that were not trained."""

    rate: tuple[RateField, RateField]
    """Minimum and maximum rate."""
    owd: tuple[TimeField, TimeField]
    """Minimum and maximum one-way delay."""


class Published(Strict):
    """Published winning rates, shown next to ccgym's."""

    source: str
    """Source of the rates."""
    participants: tuple[str, ...]
    """The published schemes; those in ccgym are compared. A winning rate depends on the schemes that take part."""
    rates: Mapping[str, float]
    """Published winning rates by scheme, fractions."""
    instead: Mapping[str, str] = Field(default_factory=dict)
    """Substitutes for published schemes that ccgym does not have, with the names of the published schemes."""


class Games(Strict):
    """Comparison of schemes on every condition in games, one game for each window of time.

    The rules are ccBench's (arXiv 2307.10054); see :mod:`ccgym.experiments.views.games`.
    """

    rule: Literal["power", "fair_share"]
    """``power``: throughput² / round-trip time; ``fair_share``: distance from an equal share of the link."""
    throughput: tuple[str, ...] = Field(min_length=1)
    """Metrics of the throughput in each window, Mbit/s."""
    delay: tuple[str, ...] = ()
    """For ``power``: metrics of the mean one-way delay in each window, ms."""
    share: tuple[str, ...] = ()
    """For ``power``: metrics of the used fraction of the capacity in each window."""
    published: Published | None = None

    @model_validator(mode="after")
    def _metrics_of_every_window(self) -> Games:
        wanted = len(self.throughput) if self.rule == "power" else 0
        for name, given in (("delay", self.delay), ("share", self.share)):
            if len(given) != wanted:
                raise ConfigError(
                    "wrong-count", f"{len(given)} metrics", where=f"games.{name}", expected=f"{wanted}, one per window"
                )
        return self

    @property
    def metrics(self) -> tuple[str, ...]:
        """All metrics of the games."""
        return (*self.throughput, *self.delay, *self.share)


class ExperimentSpec(ScenarioSpec):
    """An experiment: its runs, metrics, criteria and figures."""

    title: str
    """Label, in a few words."""
    question: str = ""
    """The question of the experiment, in a sentence."""
    setting: str = ""
    """Paths and flows, in a sentence."""
    threshold: str = ""
    """The threshold, in a sentence."""
    brief: str = ""
    """The threshold in a few words."""
    source: str = ""
    """Source of the experiment."""
    schemes: Sequence[Raw] = ("cubic", "bbr", "copa:mode=paper", "learned")
    """Tested schemes if the command names none: names, ``bbr+cubic@5s``, names of groups such as ``learned``
    (:mod:`ccgym.schemes.groups`), or ``{name: …, flows: […]}``."""
    learned_only: bool = False
    """Whether only learned policies take part; other schemes are left out."""
    untrained: Untrained | None = None
    """With this, ``$trained_rate`` and ``$trained_owd`` are the max rate and one-way delay of a scheme's training
    according to its card; for a scheme that was not trained, the maxima of this range."""
    runs: int = Field(default=5, ge=1, le=MAX_RUNS)
    """Repetitions of every condition."""
    draws: int = Field(default=1, ge=1, le=MAX_RUNS)
    """Runs per repetition, each with its own draws: experiments over random paths need several."""
    scenarios: Mapping[str, Mapping[str, Raw]] = Field(default_factory=dict)
    """Conditions of several kinds, by name: each has the fields that it does not share with the others."""
    sampling: PeriodField = 100 * NS_PER_MS
    """Interval between the samples that metrics use."""
    series: PeriodField | None = None
    """Bin width of the series of first runs that figures show; by default no series are kept."""
    metrics: Mapping[str, Mapping[str, Raw]] = Field(min_length=1)
    """Metrics by name, the most important first, with their options (:mod:`ccgym.experiments.metrics`)."""
    criteria: tuple[CriterionSpec, ...] = ()
    """Criteria that a scheme must meet to pass."""
    figures: tuple[str | Mapping[str, Mapping[str, Raw]], ...] = ()
    """Figures: names (:mod:`ccgym.report.figures`), or a name with options: ``{sweep: {x: owd}}``."""
    games: Games | None = None
    """Games between the schemes; with games, the experiment is a part of a league."""
    compare: bool = False
    """Whether schemes are compared pair by pair: better, worse or undecided in each metric with a better direction."""
    optional: bool = False
    """Whether the experiment is left out, with a note, if a required trace is missing."""
    quick: Mapping[str, Raw] = Field(default_factory=dict)
    """Fields that ``--quick`` changes."""
    name: str = ""
    """Name in files: the name of the YAML file."""

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, data: Any) -> Any:
        if isinstance(data, Mapping):
            data = dict(data)
            metrics = data.get("metrics")
            if isinstance(metrics, list) and all(isinstance(one, str) for one in metrics):
                metrics = {one: {} for one in metrics}
            if isinstance(metrics, Mapping):
                data["metrics"] = {key: {} if options is None else options for key, options in metrics.items()}
        return data

    @property
    def baselines(self) -> tuple[str, ...]:
        """The schemes that criteria compare with."""
        return tuple(dict.fromkeys(name for one in self.criteria for name in one.baselines))

    def parts(self) -> Mapping[str, ScenarioSpec]:
        """Return the scenarios by name, each with the shared fields; without scenarios, one with an empty name."""
        shared = {key: getattr(self, key) for key in ScenarioSpec.model_fields if key in self.model_fields_set}
        if not self.scenarios:
            return {"": ScenarioSpec.model_validate(shared)}
        made = {}
        for name, own in self.scenarios.items():
            # The scenario's own sweep comes before the shared sweep.
            sweep = own.get("sweep", {})
            if not isinstance(sweep, Mapping):
                raise ConfigError(
                    "not-a-mapping",
                    shown(sweep),
                    where=f"scenarios.{name}.sweep",
                    expected="names, each with its values",
                )
            both = {**merged(shared, own), "sweep": {**sweep, **shared.get("sweep", {})}}
            try:
                made[name] = ScenarioSpec.model_validate(both)
            except ValidationError as error:
                raise config_error(error, ScenarioSpec).at(f"scenarios.{name}") from None
        return made


class Row(Strict):
    """A requirement in a section of a document, and the experiments that test it."""

    section: str
    """Number of the section: ``5.1.1``."""
    title: str
    """Topic of the requirement, in a few words."""
    level: Literal["MUST", "SHOULD", "–"]
    """Level of the requirement; ``–``: without a key word of RFC 2119."""
    asks: str
    """The requirement, in a sentence of ccgym."""
    tests: tuple[str, ...] = ()
    """Files of the experiments that test the requirement, next to the file of the set."""
    reason: str = ""
    """Reasons and sources of their thresholds."""
    missing: str = ""
    """What is not tested, and what a test would need."""
    author: str = ""
    """What no experiment can test: the author of a scheme must write it."""

    @model_validator(mode="after")
    def _says_something(self) -> Row:
        if not (self.tests or self.missing or self.author):
            raise ConfigError(
                "key-missing", "a row without content", expected="tests, missing or author", where=self.section
            )
        if self.tests and not self.reason:
            raise ConfigError("key-missing", "thresholds without a reason", expected="reason", where=self.section)
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the experiments."""
        return tuple(Path(file).stem for file in self.tests)


class ExperimentSet(Strict):
    """Experiments that are run and shown together."""

    title: str
    """Label of the set."""
    include: tuple[str, ...] = Field(min_length=1)
    """Files of the experiments, next to this file; with :attr:`rows`, the files of the rows."""
    document: str = ""
    """The document with the requirements: ``RFC 9743``."""
    rows: tuple[Row, ...] = ()
    """Requirements of a document, section by section: the page is then a report on them."""
    note: str = ""
    """For a set with rows: a note on its thresholds."""
    intervals: bool = False
    """Whether a verdict requires the whole 95 % interval of a mean on one side of its threshold, else *undecided*.
    By default the mean decides."""
    name: str = ""
    """Name in files: the name of the YAML file."""
    experiments: tuple[ExperimentSpec, ...] = ()
    """The experiments, in order."""
    left_out: tuple[str, ...] = ()
    """Optional experiments that cannot run on this machine, with reasons."""

    @model_validator(mode="before")
    @classmethod
    def _include_of_rows(cls, data: Any) -> Any:
        if not isinstance(data, Mapping) or not isinstance(data.get("rows"), list) or "include" in data:
            return data
        named = (row.get("tests") or () for row in data["rows"] if isinstance(row, Mapping))
        return {**data, "include": list(dict.fromkeys(file for files in named for file in files))}

    @property
    def kind(self) -> Literal["experiment", "league", "requirements"]:
        """Kind of the results: verdicts, rankings, or a report on a document's requirements."""
        if self.rows:
            return "requirements"
        return "league" if any(one.games for one in self.experiments) else "experiment"

    def only(self, sections: Sequence[str]) -> ExperimentSet:
        """Return the set with only the rows of these sections and their subsections.

        Raises:
            ConfigError: There is no such section.
        """
        for wanted in sections:
            if not any(_within(row.section, wanted) for row in self.rows):
                known = [row.section for row in self.rows]
                raise ConfigError(
                    "unknown-name",
                    f"no section {shown(wanted)}",
                    expected=", ".join(known),
                    hint=did_you_mean(wanted, known),
                )
        rows = tuple(row for row in self.rows if any(_within(row.section, wanted) for wanted in sections))
        names = {name for row in rows for name in row.names}
        tests = tuple(one for one in self.experiments if one.name in names)
        return self.model_copy(update={"rows": rows, "experiments": tests})

    @property
    def schemes(self) -> list[Raw]:
        """Schemes of all experiments."""
        return list({str(one): one for test in self.experiments for one in test.schemes}.values())


def _within(section: str, wanted: str) -> bool:
    return section == wanted or section.startswith(f"{wanted}.")
