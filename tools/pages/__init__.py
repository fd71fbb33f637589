"""What stands on pages of the documentation: one module per page, and what they share."""

from __future__ import annotations

from collections.abc import Callable

from pages import (
    agents,
    cellular,
    coexistence,
    deployment,
    environments,
    experiments,
    league,
    published,
    results,
    schemes,
    traces,
    training_records,
    validation,
    weaknesses,
)

BLOCKS: dict[str, dict[str, Callable[[], list[str]]]] = {
    page: blocks
    for module in (
        agents,
        cellular,
        coexistence,
        deployment,
        environments,
        experiments,
        league,
        published,
        results,
        schemes,
        traces,
        training_records,
        validation,
        weaknesses,
    )
    for page, blocks in module.BLOCKS.items()
}
"""Pages that are written by hand, and what is written into them."""
