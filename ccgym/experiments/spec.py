"""What an experiment's YAML says: paths, flows, sweeps and draws, metrics, criteria and figures.

What has placeholders is kept as it was written; :mod:`ccgym.experiments.expand` puts values in their place.
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
    """Two mappings merged key by key; everything else is replaced."""
    found = dict(base)
    for key, value in over.items():
        before = found.get(key)
        found[key] = merged(before, value) if isinstance(before, Mapping) and isinstance(value, Mapping) else value
    return found


class ScenarioSpec(Strict):
    """Conditions of one kind: what varies, the path, and the flows."""

    sweep: Mapping[str, Sequence[Raw] | Mapping[str, Mapping[str, Raw]]] = Field(default_factory=dict)
    """Values that vary: ``{rate: [10mbps, 50mbps]}``; every combination is a condition. ``{order: {first: {a: 1},
    second: {a: 2}}}`` sets several values under one name; ``{"rate, owd": [[6mbps, 10ms], …]}`` varies them together.
    The first varies fastest."""
    parameters: Mapping[str, Raw] = Field(default_factory=dict)
    """Values that do not vary, or follow from others: ``{begin: $(0.8 * duration)}``."""
    draw: Mapping[str, Mapping[str, Raw]] = Field(default_factory=dict)
    """Random values, drawn for every run in this order: ``{owd: {uniform: [10ms, 100ms]}}``; see
    :mod:`ccgym.experiments.draws`."""
    path: Raw = None
    """The path: a name, a mahimahi command line or a mapping."""
    paths: Sequence[Raw] | Mapping[str, Raw] | None = None
    """Instead of ``path``: several, by name; the sweep's last value, called ``path``."""
    flows: Sequence[Mapping[str, Raw]] = ({"scheme": "$scheme"},)
    """The flows, as in ``simulate``; ``$scheme`` is the tested scheme."""
    duration: Raw = "30s"
    """Length of a run."""


class Untrained(Strict):
    """Range of rates and one-way delays that stands in where a scheme was not trained."""

    rate: tuple[RateField, RateField]
    """Minimum and maximum rate."""
    owd: tuple[TimeField, TimeField]
    """Minimum and maximum one-way delay."""


class Published(Strict):
    """Winning rates that were published, to stand next to ours."""

    source: str
    """Where they are from."""
    participants: tuple[str, ...]
    """The schemes that are compared, as far as they take part: a winning rate depends on who does."""
    rates: Mapping[str, float]
    """Published winning rates by scheme, fractions."""
    instead: Mapping[str, str] = Field(default_factory=dict)
    """Schemes that stand in for published ones that ccgym does not have, with the names of those."""


class Games(Strict):
    """How schemes are compared on every condition: in games, one for each window of time.

    The rules are ccBench's (arXiv 2307.10054); :mod:`ccgym.experiments.views.games` has them.
    """

    rule: Literal["power", "fair_share"]
    """``power``: throughput² / round-trip time; ``fair_share``: how near to its equal part of the link."""
    throughput: tuple[str, ...] = Field(min_length=1)
    """The metric of the throughput in each window, Mbit/s."""
    delay: tuple[str, ...] = ()
    """Of ``power``: the metric of the mean one-way delay in each, ms."""
    share: tuple[str, ...] = ()
    """Of ``power``: the metric of the part of the capacity that was used in each."""
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
        """All metrics that it needs."""
        return (*self.throughput, *self.delay, *self.share)


class ExperimentSpec(ScenarioSpec):
    """An experiment: what is run, what is measured, what passes, what is drawn."""

    title: str
    """Label, in a few words."""
    question: str = ""
    """What is asked, in a sentence."""
    setting: str = ""
    """Paths and flows, in a sentence."""
    threshold: str = ""
    """What passes, in a sentence."""
    brief: str = ""
    """The same in a few words."""
    source: str = ""
    """Where the experiment comes from."""
    schemes: Sequence[Raw] = ("cubic", "bbr", "copa:mode=paper", "learned")
    """Schemes that are tested where none are named: names, ``bbr+cubic@5s``, words for several such as
    ``learned`` (:mod:`ccgym.schemes.groups`), or ``{name: …, flows: […]}``."""
    learned_only: bool = False
    """Whether only learned policies are judged; other schemes are left out."""
    untrained: Untrained | None = None
    """With this, ``$trained_rate`` and ``$trained_owd`` are the largest rate and one-way delay that a scheme was
    trained on, as its card says; of a scheme that was not trained, the maxima of this range."""
    runs: int = Field(default=5, ge=1, le=MAX_RUNS)
    """Repetitions of every condition."""
    draws: int = Field(default=1, ge=1, le=MAX_RUNS)
    """Runs per repetition, each with its own draws: experiments over random paths take more."""
    scenarios: Mapping[str, Mapping[str, Raw]] = Field(default_factory=dict)
    """Conditions of several kinds, by name: each has what it does not share with the others."""
    sampling: PeriodField = 100 * NS_PER_MS
    """Spacing of the samples that metrics are computed from."""
    series: PeriodField | None = None
    """Width of the bins of the rate over time that figures show of first runs; none are kept by default."""
    metrics: Mapping[str, Mapping[str, Raw]] = Field(min_length=1)
    """Metrics by name, the most important first, with their options (:mod:`ccgym.experiments.metrics`)."""
    criteria: tuple[CriterionSpec, ...] = ()
    """What a scheme has to meet to pass."""
    figures: tuple[str | Mapping[str, Mapping[str, Raw]], ...] = ()
    """What is drawn: names of figures (:mod:`ccgym.report.figures`), or a name with options: ``{sweep: {x: owd}}``."""
    games: Games | None = None
    """How schemes are ranked against each other; with it the experiment is a part of a league."""
    compare: bool = False
    """Whether schemes are compared pair by pair: better, worse or undecided in each metric that has a better side."""
    optional: bool = False
    """Whether it is left out, with a word, where a trace that it needs is missing."""
    quick: Mapping[str, Raw] = Field(default_factory=dict)
    """What ``--quick`` changes."""
    name: str = ""
    """Name in files; that of the YAML file."""

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
        """The scenarios by name, each with what it shares with the others; one without a name where none are named."""
        shared = {key: getattr(self, key) for key in ScenarioSpec.model_fields if key in self.model_fields_set}
        if not self.scenarios:
            return {"": ScenarioSpec.model_validate(shared)}
        made = {}
        for name, own in self.scenarios.items():
            # What a scenario sweeps over itself comes before what it shares.
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
    """What a section of a document asks of a scheme, and the experiments that answer."""

    section: str
    """Number of the section: ``5.1.1``."""
    title: str
    """What it is about, in a few words."""
    level: Literal["MUST", "SHOULD", "–"]
    """How strongly the document asks for it; ``–``: without a key word of RFC 2119."""
    asks: str
    """What it asks for, in a sentence of ours."""
    tests: tuple[str, ...] = ()
    """Files of the experiments that answer, next to the file of the set."""
    reason: str = ""
    """Why their thresholds lie where they do, and whose they are."""
    missing: str = ""
    """What is not tested, and what that would need."""
    author: str = ""
    """What no experiment can answer: the author of a scheme has to write it."""

    @model_validator(mode="after")
    def _says_something(self) -> Row:
        if not (self.tests or self.missing or self.author):
            raise ConfigError(
                "key-missing", "a row without an answer", expected="tests, missing or author", where=self.section
            )
        if self.tests and not self.reason:
            raise ConfigError("key-missing", "thresholds without a reason", expected="reason", where=self.section)
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its experiments."""
        return tuple(Path(file).stem for file in self.tests)


class ExperimentSet(Strict):
    """Experiments that are run and shown together."""

    title: str
    """Label."""
    include: tuple[str, ...] = Field(min_length=1)
    """Their files, next to this one; with :attr:`rows` those of the rows."""
    document: str = ""
    """The document that the rows are of: ``RFC 9743``."""
    rows: tuple[Row, ...] = ()
    """What a document asks for, section by section: the page is then a report on these."""
    note: str = ""
    """Of a set with rows: what has to be known of its thresholds."""
    intervals: bool = False
    """Whether a verdict needs the whole 95 % interval of a mean on one side of its threshold; else it is *undecided*.
    By default the mean decides."""
    name: str = ""
    """Name in files; that of the YAML file."""
    experiments: tuple[ExperimentSpec, ...] = ()
    """The experiments, in order."""
    left_out: tuple[str, ...] = ()
    """Optional experiments that cannot be run here, and why."""

    @model_validator(mode="before")
    @classmethod
    def _include_of_rows(cls, data: Any) -> Any:
        if not isinstance(data, Mapping) or not isinstance(data.get("rows"), list) or "include" in data:
            return data
        named = (row.get("tests") or () for row in data["rows"] if isinstance(row, Mapping))
        return {**data, "include": list(dict.fromkeys(file for files in named for file in files))}

    @property
    def kind(self) -> Literal["experiment", "league", "requirements"]:
        """What is made of the runs: verdicts, rankings, or a report on a document's requirements."""
        if self.rows:
            return "requirements"
        return "league" if any(one.games for one in self.experiments) else "experiment"

    def only(self, sections: Sequence[str]) -> ExperimentSet:
        """The set with the rows of these sections, and of those within them, alone.

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
        """The schemes of all experiments."""
        return list({str(one): one for test in self.experiments for one in test.schemes}.values())


def _within(section: str, wanted: str) -> bool:
    return section == wanted or section.startswith(f"{wanted}.")
