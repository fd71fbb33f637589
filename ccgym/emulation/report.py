"""What a run process says about its path: whether the machine kept up, and what it lacked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ccgym.errors import RealPathError


@dataclass(frozen=True)
class PathReport:
    """One run's report. Its content is kept as it came, so that results lose nothing of it."""

    data: Mapping[str, Any]
    """The report as plain data."""

    @classmethod
    def from_json(cls, text: str) -> PathReport:
        """Read what the run process wrote.

        Raises:
            RealPathError: It is no report.
        """
        try:
            data = json.loads(text)
        except json.JSONDecodeError as error:
            raise RealPathError(f"the report is not JSON: {error}", where="reading the run's result") from None
        if not isinstance(data, dict):
            raise RealPathError("the report is not a JSON object", where="reading the run's result")
        return cls(data)

    @property
    def limited(self) -> str | None:
        """Why the machine could not hold the schedule; None where it could."""
        return limited_reason(self.data)

    @property
    def unavailable(self) -> dict[int, str]:
        """Why flows could not be run at all, by index: a congestion control that the kernel does not have."""
        return {int(flow): str(reason) for flow, reason in self.data.get("unavailable") or ()}

    @property
    def notes(self) -> tuple[str, ...]:
        """What else is worth knowing."""
        return tuple(str(note) for note in self.data.get("notes") or ())


def limited_reason(report: Mapping[str, Any] | None) -> str | None:
    """Why the machine could not hold the schedule of a run, from the report's plain data; None where it could."""
    reason = None if report is None else report.get("limited")
    return str(reason) if reason else None
