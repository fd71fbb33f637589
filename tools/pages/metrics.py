"""docs/metrics.md."""

from __future__ import annotations

import inspect
import sys
from typing import Final

from ccgym.evaluation.ccperf_names import DEFINITIONS
from ccgym.experiments.metrics import METRICS
from pages.markdown import code, sentence, table

OF: Final = {"flow": "flow", "link": "link", "net": "all flows"}
BETTER: Final = {"higher": "high", "lower": "low", "one": "near 1", "neither": ""}


def metrics() -> list[str]:
    """Every metric that an experiment can name."""
    rows = [
        (
            code(one.name), OF[one.scope], one.layer, "" if one.unit == "1" else one.unit, BETTER[one.better],
            one.formula + (" (ours)" if one.ours else ""),
        )
        for one in DEFINITIONS.values()
    ]  # fmt: skip
    for name, kind in METRICS.items():
        what = sentence(inspect.getdoc(sys.modules[kind.__module__]) or "").partition(": ")[2]
        unit = kind.model_fields["unit"].default
        rows.append((code(name), "run", kind.LAYER, unit, BETTER[kind.BETTER], what))
    return table(["Metric", "of", "layer", "unit", "better", "What it is"], rows)


BLOCKS = {"docs/metrics.md": {"metrics": metrics}}
