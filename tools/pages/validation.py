"""docs/validation.md."""

from __future__ import annotations

import json
import sys

from pages.markdown import ROOT


def shells() -> list[str]:
    """What mahimahi's shell and ours did with the same packets, as recorded."""
    sys.path.insert(0, str(ROOT / "tests" / "differential" / "record"))
    import record_shell

    return str(record_shell.table(json.loads(record_shell.SUMMARY.read_text())["cases"])).splitlines()


BLOCKS = {"docs/validation.md": {"shells": shells}}
