"""Metrics from ccperf's tables: of a flow, of a link, or of all flows together."""

from __future__ import annotations

from typing import Any

from pydantic import model_validator
from typing_extensions import override

from ccgym.errors import ConfigError, did_you_mean, shown
from ccgym.evaluation.ccperf_names import DEFINITIONS, Better, Definition, Scope
from ccgym.experiments.metrics.base import Measured, Metric

USUAL_SCOPE: dict[Scope, str] = {"flow": "flow_1", "link": "btl_forward", "net": "net"}
"""The default table of each kind of metric."""


class Ccperf(Metric):
    """A value of a table. Its name is the name of the metric in YAML: ``{metric: mean_srtt_l4, scope: flow_2}``."""

    version = 2

    label: str = ""
    name: str
    """Name as in :data:`ccgym.evaluation.ccperf_names.DEFINITIONS`."""
    scope: str = ""
    """The table: ``flow_1``, ``flow_2``, …; ``btl_forward`` (the bottleneck) or the name of one of several links; or
    ``net`` (all flows). By default the first flow, the bottleneck, or all flows."""

    @model_validator(mode="before")
    @classmethod
    def _usual(cls, given: dict[str, Any]) -> dict[str, Any]:
        known = DEFINITIONS[given["name"]]
        scope = given.get("scope") or USUAL_SCOPE[known.scope]
        label = known.name if known.scope == "net" else f"{known.name}, {scope}"
        return {"label": label, "unit": "" if known.unit == "1" else known.unit, **given, "scope": scope}

    @property
    def definition(self) -> Definition:
        """Definition of the metric."""
        return DEFINITIONS[self.name]

    @property
    @override
    def better(self) -> Better:
        return self.definition.better

    @property
    @override
    def needs_packets(self) -> bool:
        return self.definition.needs_packets

    @override
    def of(self, run: Measured) -> float | None:
        tables = run.record.ccperf().scopes()
        if self.scope not in tables:
            raise ConfigError(
                "unknown-choice",
                f"scope {shown(self.scope)}",
                expected=", ".join(tables),
                hint=did_you_mean(self.scope, tables),
            )
        table = tables[self.scope]
        if self.name not in table:
            raise ConfigError(
                "unknown-metric",
                f"{self.name} of {self.scope}",
                expected=", ".join(table),
                hint=f"use it for a {self.definition.scope}; some metrics also need a source or a buffer",
            )
        return table[self.name].value
