"""docs/results.md: columns and arrays of results."""

from __future__ import annotations

from functools import partial

from ccgym.evaluation.curves import FlowCurves, RunCurves
from ccgym.evaluation.results import RUN_COLUMNS
from ccgym.evaluation.results_file import Measurement
from ccgym.evaluation.run_numbers import FLOW_COLUMN, PACKET_COLUMNS, SERIES_COLUMNS, FlowRecord
from ccgym.evaluation.run_record import RunRecord
from pages.fields import field_meanings, frame_columns
from pages.markdown import code, table


def raw_arrays() -> list[str]:
    """What a run holds as arrays."""
    run = field_meanings(RunRecord)
    meanings = {f"run.{name}": run[name] for name in ("series", "packets")}
    meanings |= {f"run.curves().{name}": text for name, text in field_meanings(RunCurves).items()}
    meanings |= {f"run.curves().flows[i].{name}": text for name, text in field_meanings(FlowCurves).items()}
    return table(["Attribute", ""], [(code(name), text.replace("``", "`")) for name, text in meanings.items()])


BLOCKS = {
    "docs/results.md": {
        "flow-columns": partial(frame_columns, {**FLOW_COLUMN, **field_meanings(FlowRecord)}),
        "series-columns": partial(frame_columns, SERIES_COLUMNS),
        "packet-columns": partial(frame_columns, PACKET_COLUMNS),
        "result-columns": partial(frame_columns, RUN_COLUMNS),
        "measurement-columns": partial(frame_columns, field_meanings(Measurement)),
        "raw-arrays": raw_arrays,
    }
}
