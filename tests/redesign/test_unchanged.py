"""The redesign changes names and places, not packets and numbers; see ``record.py``."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.redesign import record


@pytest.mark.parametrize("measure", record.RECORDED, ids=lambda measure: str(measure.__name__))
def test_unchanged(measure: Callable[[], dict[str, Any]]) -> None:
    expected = json.loads(record.EXPECTED.read_text())[measure.__name__]
    found = json.loads(json.dumps(measure()))
    assert expected.keys() <= found.keys()
    changed = {key: (expected[key], found[key]) for key in expected if expected[key] != found[key]}
    assert not changed, f"{len(changed)} of {len(expected)} differ, such as {next(iter(changed.items()))}"
