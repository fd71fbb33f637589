"""docs/experiments.md."""

from __future__ import annotations

import inspect
import sys

from ccgym.config.yaml_loader import parse_yaml
from ccgym.experiments.metrics import METRICS, Metric
from ccgym.report.figures import figures_of
from pages.fields import options
from pages.markdown import ROOT, code, sentence, table


def metrics() -> list[str]:
    """What experiments measure."""
    rows = [
        (code(name), sentence(inspect.getdoc(sys.modules[kind.__module__]) or ""), options(kind, *Metric.model_fields))
        for name, kind in METRICS.items()
    ]
    return table(["Metric", "What it is", "Options"], rows)


def test_figures() -> list[str]:
    """What a test can show."""
    rows = [(code(one.name), one.title, options(one.options)) for one in figures_of("test") if one.options]
    return table(["Figure", "What it shows", "Options"], rows)


def experiments() -> list[str]:
    """The experiments that come with ccgym."""
    files = sorted((ROOT / "configs/experiments").glob("*.yaml"))
    titles = [parse_yaml(file.read_text(), file.name).data["title"] for file in files]
    return table(["Name", ""], [(code(file.stem), title) for file, title in zip(files, titles, strict=True)])


BLOCKS = {"docs/experiments.md": {"experiments": experiments, "metrics": metrics, "figures": test_figures}}
