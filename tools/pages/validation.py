"""docs/validation.md."""

from __future__ import annotations

import gzip
import json
import sys

from pages.markdown import ROOT, table
from pages.schemes import named
from tests.reproduction import genuine_programs as genuine


def shells() -> list[str]:
    """What mahimahi's shell and ours did with the same packets, as recorded."""
    sys.path.insert(0, str(ROOT / "tests" / "differential" / "record"))
    import record_shell

    summary = json.loads(gzip.decompress(record_shell.SUMMARY.read_bytes()))
    return str(record_shell.table(summary["cases"])).splitlines()


def programs() -> list[str]:
    """The programs of the founding reports and ours: medians of throughput, 95th percentile of delay, and loss."""

    def cell(runs: tuple[genuine.Run, ...]) -> str:
        throughput, delay, loss = (genuine.middle(runs, name) for name in ("throughput_mbps", "delay_p95_ms", "loss"))
        return f"{throughput:.2f} / {delay:.0f} / {100 * loss:.1f}"

    rows = []
    for program in genuine.PROGRAMS:
        for path in genuine.PATHS:
            of_program, emulated, simulated = genuine.compared(program, path).values()
            beyond, why = genuine.BEYOND.get((program, path), ("", ""))
            cells = (cell(of_program) + f" ({len(of_program)})", cell(emulated), cell(simulated))
            rows.append((named(program), path, *cells, beyond.replace(" ", ", "), why))
    return table(["Scheme", "Path", "Program (runs)", "Ours, emulated", "Ours, simulated", "Beyond", "Why"], rows)


BLOCKS = {"docs/validation.md": {"shells": shells, "programs": programs}}
