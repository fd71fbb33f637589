"""Random streams: one root seed, and a seed per name derived from it; capture and restore of all generators."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import torch

STREAMS: Final = ("model", "environment")
"""Streams of a training run: ``model`` for initial weights, exploration and batches; ``environment`` for paths."""


def stream_seed(root: int, name: str) -> int:
    """Return the seed of a named stream, below 2^31.

    Args:
        root: The root seed.
        name: Any text; different names give unrelated streams.
    """
    return int(np.random.SeedSequence([root, *name.encode()]).generate_state(1)[0] >> 1)


def capture_generators() -> dict[str, Any]:
    """Return the state of Python's, numpy's and torch's global generators, in types that ``torch.load`` accepts."""
    legacy: Any = np.random.get_state()  # noqa: NPY002 (SB3 draws its batches from it)
    kind, keys, position, has_gauss, cached = legacy
    state: dict[str, Any] = {
        "python": random.getstate(),
        "numpy": (kind, torch.from_numpy(keys.astype(np.int64)), position, has_gauss, cached),
        "torch": torch.get_rng_state(),
    }
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def restore_generators(state: dict[str, Any]) -> None:
    """Restore the state of the global generators from :func:`capture_generators`."""
    version, internal, gauss = state["python"]
    random.setstate((version, tuple(internal), gauss))
    kind, keys, position, has_gauss, cached = state["numpy"]
    np.random.set_state((kind, keys.numpy().astype(np.uint32), position, has_gauss, cached))  # noqa: NPY002
    torch.set_rng_state(state["torch"])
    if torch.cuda.is_available() and len(state.get("cuda", ())) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all(state["cuda"])


@contextmanager
def generators_kept() -> Iterator[None]:
    """Allow seeding and use of the global generators within this context; afterward, restore their state."""
    kept = capture_generators()
    try:
        yield
    finally:
        restore_generators(kept)
