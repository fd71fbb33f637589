"""Coordinates and metrics on axes: ``rate_mbps`` is ``rate (Mbit/s)``, fractions are percentages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ccgym.experiments.metrics import Metric
from ccgym.experiments.outcome import Test

_UNITS: Final = {"mbps": "Mbit/s", "ms": "ms", "s": "s", "bdp": "BDP", "packets": "packets"}
_NAMES: Final = {
    "owd": "one-way delay", "rtt": "RTT", "loss": "random loss", "start": "start of the later flow",
    "interval": "time between starts of flows",
}  # fmt: skip


def coordinate_parts(name: str) -> tuple[str, str]:
    """Return the name and unit of a coordinate; the unit is empty if the name ends in no unit."""
    stem, _, unit = name.rpartition("_")
    if unit not in _UNITS or not stem:
        stem, unit = name, ""
    return _NAMES.get(stem, stem.replace("_", " ")), _UNITS.get(unit, "")


def coordinate_label(name: str) -> str:
    """Return the label of an axis: ``rate (Mbit/s)``."""
    label, unit = coordinate_parts(name)
    return f"{label} ({unit})" if unit else label


def coordinate_text(name: str, value: float | str) -> str:
    """Return a coordinate with its value: ``rate 10 Mbit/s``."""
    label, unit = coordinate_parts(name)
    if unit == "ms" and not isinstance(value, str) and value >= 1000:
        value, unit = value / 1000, "s"
    return " ".join(filter(None, (label, value_text(value), unit)))


def coordinate_axis(name: str, values: Sequence[float | str]) -> tuple[str, float]:
    """Return ``rate (Mbit/s)`` and the factor of the values: times that are whole seconds are shown in seconds."""
    if name.endswith("_ms") and all(not isinstance(value, str) and value % 1000 == 0 for value in values):
        return coordinate_label(f"{name.removesuffix('_ms')}_s"), 0.001
    return coordinate_label(name), 1.0


def coordinates_text(at: Mapping[str, float | str]) -> str:
    """Return all coordinates with their values: ``rate 10 Mbit/s, buffer 1 BDP``."""
    return ", ".join(coordinate_text(name, value) for name, value in at.items())


def value_text(value: float | str) -> str:
    """Return the value of a coordinate as text."""
    return value if isinstance(value, str) else f"{value:g}"


def metric_label(metric: Metric) -> str:
    """Return the label of a metric: ``utilization (%)``."""
    return f"{metric.label} ({metric.unit})" if metric.unit else metric.label


def metric_scale(metric: Metric) -> float:
    """Return the factor of the values: 100 for percentages."""
    return 100.0 if metric.unit == "%" else 1.0


def chosen_metrics(test: Test, *names: str) -> list[Metric]:
    """Return the metrics of these names; by default the test's first and second, or its only metric."""
    return [
        test.by_key(name) if name else test.metrics[min(at, len(test.metrics) - 1)] for at, name in enumerate(names)
    ]
