"""Sizes of transfers: laws that the native core draws from, for what draws outside a run."""

from __future__ import annotations

import json
from collections.abc import Callable

from ccgym import _core
from ccgym.config.models import AnyTransferSize


def mean_bytes(size: AnyTransferSize) -> float:
    """The mean, bytes.

    Raises:
        ValueError: The values do not fit each other.
    """
    return _core.mean_size(json.dumps(size.native()))


def sampler(size: AnyTransferSize, uniform: Callable[[], float]) -> Callable[[], int]:
    """Draws sizes, bytes, from what ``uniform`` gives: numbers from 0 up to, not including, 1."""
    law = json.dumps(size.native())
    return lambda: _core.draw_size(law, uniform)
