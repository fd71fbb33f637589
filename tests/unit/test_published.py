"""The data of docs/studies/published.md agree with each other, with the catalog and with what the tests found."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import pytest

from ccgym.config.catalog import catalog

ROOT = Path(__file__).parents[2]


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module that writes the page."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    from pages import published  # type: ignore[import-not-found]

    return published


def test_the_means_of_the_report_are_those_of_its_runs(page: Any) -> None:
    runs = page.published_runs()
    assert runs
    for row in page.published_runs("mean"):
        own = [one for one in runs if one["label"] == row["label"]]
        for name in page.QUANTITIES:
            mean = statistics.fmean(float(one[name]) for one in own)
            assert float(row[name]) == pytest.approx(mean, abs=0.006), (row["label"], name)


def test_the_catalog_has_the_same_means(page: Any) -> None:
    known = catalog().paths["77.72mbps"].published
    rows = {row["scheme"]: row for row in page.published_runs("mean")}
    assert rows.keys() == known.keys()
    for scheme, one in known.items():
        row = rows[scheme]
        assert (one.throughput_mbps, one.delay_p95_ms) == (float(row["throughput_mbps"]), float(row["delay_p95_ms"]))
        assert 100 * one.loss == pytest.approx(float(row["loss_percent"]))


def test_what_differs_has_a_reason(page: Any) -> None:
    for row in page.published_runs("mean"):
        ours = [page.means(page.our_runs(results, row["scheme"])) for results in page.COLUMNS]
        assert all(ours), f"{row['label']}: no runs of ours"
        assert not any(page.differs(row, one) for one in ours) or row["note"], row["label"]


def test_each_number_of_a_specification_is_within_its_tolerance(page: Any) -> None:
    known = page.expectations()
    for row in page.kept_rows("published"):
        found = known[row["test"], row["what"]]
        off = abs(float(found["found"]) / float(found["expected"]) - 1)
        assert off <= float(found["tolerance"]) + 1e-3, row
