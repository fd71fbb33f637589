"""Tables and figures on pages of the documentation."""

from __future__ import annotations

from collections.abc import Callable

from pages import errors, published, reference, schemes

BLOCKS: dict[str, dict[str, Callable[[], list[str]]]] = {}
"""The tables and figures of each page, by name."""

for _module in (errors, published, reference, schemes):
    for _page, _blocks in _module.BLOCKS.items():
        BLOCKS.setdefault(_page, {}).update(_blocks)
