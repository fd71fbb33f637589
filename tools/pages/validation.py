"""docs/validation.md."""

from __future__ import annotations

import gzip
import json
import sys

from pages.markdown import ROOT


def shells() -> list[str]:
    """What mahimahi's shell and ours did with the same packets, as recorded."""
    sys.path.insert(0, str(ROOT / "tests" / "differential" / "record"))
    import record_shell

    summary = json.loads(gzip.decompress(record_shell.SUMMARY.read_bytes()))
    return str(record_shell.table(summary["cases"])).splitlines()


BLOCKS = {"docs/validation.md": {"shells": shells}}
