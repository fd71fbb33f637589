"""docs/traces.md."""

from __future__ import annotations

from functools import partial

from pages.schema import kinds

BLOCKS = {"docs/traces.md": {"elements": partial(kinds, "Element"), "queues": partial(kinds, "Queue")}}
