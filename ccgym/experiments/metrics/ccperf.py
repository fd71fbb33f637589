"""A value of ccperf's tables: those of a flow, of the bottleneck, or of all flows together."""

from __future__ import annotations

from typing_extensions import override

from ccgym.errors import ConfigError, did_you_mean, shown
from ccgym.experiments.metrics.base import Measured, Metric


class Ccperf(Metric):
    """ccperf's metric ``name`` in ``scope``: ``flow_1``, ``btl_forward`` or ``net``."""

    label: str = ""
    name: str
    """As in ccperf: ``mean_throughput_l4``."""
    scope: str = "net"
    """Which of ccperf's tables: ``flow_1``, ``flow_2``, …, ``btl_forward`` (the bottleneck) or ``net``."""

    @override
    def of(self, run: Measured) -> float | None:
        tables = run.record.ccperf()
        scopes = {f"flow_{number}": table for number, table in enumerate(tables.flows, 1)}
        scopes |= {"btl_forward": tables.link, "net": tables.network}
        if self.scope not in scopes:
            raise ConfigError(
                f"scope {shown(self.scope)}", expected=", ".join(scopes), hint=did_you_mean(self.scope, scopes)
            )
        table = scopes[self.scope]
        if self.name not in table:
            raise ConfigError(
                f"metric {shown(self.name)}", expected=", ".join(table), hint=did_you_mean(self.name, table)
            )
        return table[self.name].value
