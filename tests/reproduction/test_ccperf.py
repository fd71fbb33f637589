"""ccperf's experiments, recomputed: against the published tables and against our own runs of ns-3.37.

Where the numbers come from: data/README.md. The tolerances are this project's targets. What does not match is listed
with its reason in docs/validation.md, which these tests read.
"""

from __future__ import annotations

import re
from pathlib import Path
from statistics import fmean, median

import pytest

from tests.reproduction.ccperf import (
    HEADLINE,
    OUTLIER,
    SCHEMES,
    Experiment,
    Row,
    loss_draws,
    ns3_experiments,
    ns3_rows,
    published_rows,
    simulated,
)

MARGIN = 0.01
"""Rows this close to the limit may be listed or not."""

NOT_COMPARED = {
    "mean_qdisc_delay_l2": "ns-3 itself gives 6 % more; the published queue length implies more, too",
    "mean_product_fairness_throughput_l4": "ns-3 itself gives 1.8 % more; bins unpublished",
}
"""Published metrics that are left out, and why."""


def headline_rows() -> list[Row]:
    return [row for row in ns3_rows() if row.metric in HEADLINE]


def test_every_single_and_two_flow_run_is_compared() -> None:
    """Three schemes in five published and six chosen experiments of one flow and three of two (data/README.md)."""
    experiments = ns3_experiments()
    assert len(experiments) == 15 + 18 + 9
    assert all(row.ours is not None for row in headline_rows())
    assert len({row.experiment for row in headline_rows()}) == len(experiments)


@pytest.mark.parametrize("metric", HEADLINE)
def test_median_error_against_ns3(metric: str) -> None:
    """Source: ccperf_ns3_reproduction.csv; limits 3 %, 5 % and 5 %."""
    errors = [abs(row.error) for row in headline_rows() if row.metric == metric]
    assert len(errors) >= 20
    assert median(errors) <= HEADLINE[metric]


@pytest.mark.parametrize("experiment", ns3_experiments((1,)), ids=lambda one: one.label)
def test_one_flow_repeats_the_drops_of_ns3(experiment: Experiment) -> None:
    """Source: total_qdisc_drops_l2 in ccperf_ns3_reproduction.csv: the same packets, so nearly the same drops."""
    if experiment.random:
        pytest.skip("one random draw: see test_random_loss_in_distribution")
    if "256Mbps rtt=60ms" in experiment.name and experiment.algorithms == ("TcpNewReno",):
        pytest.skip("the send buffer of 4 MB limits ns-3 here: docs/validation.md")
    rows = [row for row in ns3_rows() if row.experiment == experiment and row.metric == "total_qdisc_drops_l2"]
    for row in rows:
        assert row.ours == pytest.approx(row.theirs, rel=0.05, abs=2), row.key


@pytest.mark.parametrize("row", published_rows(), ids=lambda row: f"{row.scope}-{row.metric}")
def test_published_experiment_85(row: Row) -> None:
    """Source: ccperf_published.csv, two NewReno flows on 32 Mbit/s. Which of the two equal flows gets more of the
    link hangs on single packets: values may differ by 5 %, counts by 10 %, the variation of what is in flight by 0.03,
    that of throughput by 0.07 (docs/validation.md: proportional rate reduction of ns-3).
    """
    if row.metric in NOT_COMPARED:
        pytest.skip(NOT_COMPARED[row.metric])
    assert row.ours is not None
    rounding = 0.005
    if row.metric.startswith("total_"):
        assert row.ours == pytest.approx(row.theirs, rel=0.10, abs=rounding)
    elif row.metric.startswith("cov_"):
        allowed = 0.07 if row.metric == "cov_throughput_l4" else 0.03
        assert row.ours == pytest.approx(row.theirs, abs=allowed + rounding)
    else:
        assert abs(row.ours - row.theirs) <= 0.05 * abs(row.theirs) + rounding


def test_published_values_are_all_there() -> None:
    """ccperf_published.csv has 57 values of experiment 85."""
    assert len(published_rows()) == 57


@pytest.mark.parametrize("algorithm", SCHEMES)
def test_random_loss_in_distribution(algorithm: str) -> None:
    """Source: 30 draws of ns-3 (ccperf_ns3_loss_draws.csv). A single draw is not comparable: NewReno's spread is 3.3
    to 5.3 Mbit/s. ns-3 needs a timeout of a second for each retransmission that is lost again, the simulator does not,
    so ours lie on the upper side; see docs/validation.md.
    """
    draws = loss_draws(algorithm)
    assert len(draws) == 30
    ours = simulated(Experiment("loss_resilience#7", (algorithm,)))[("flow_1", "mean_throughput_l4")]
    assert 0.9 * fmean(draws) <= ours <= 1.35 * fmean(draws)


def listed_outliers(text: str) -> dict[tuple[str, str, str], str]:
    """The rows of the outlier table of docs/validation.md, with their reasons."""
    table = text.split("<!-- outliers -->")[1].split("<!-- /outliers -->")[0]
    found = {}
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 7 and re.match(r"`?(flow_\d|net|btl_forward)", cells[1]):
            found[(cells[0], cells[1].strip("`"), cells[2].strip("`"))] = cells[6]
    return found


def test_outliers_are_exactly_the_documented_ones(checkout: Path) -> None:
    """docs/validation.md lists every row beyond 10 %, each with a reason, and no other.

    When this fails after an improvement: `python -m tests.reproduction.report --write`.
    """
    listed = listed_outliers((checkout / "docs" / "validation.md").read_text(encoding="utf-8"))
    errors = {row.key: abs(row.error) for row in headline_rows()}
    missing = [key for key, error in errors.items() if error > OUTLIER + MARGIN and key not in listed]
    stale = [key for key in listed if errors.get(key, 0.0) < OUTLIER - MARGIN]
    assert not missing, f"not in docs/validation.md: {missing}"
    assert not stale, f"listed in docs/validation.md, but within 10 %: {stale}"
    assert all(reason and "unexplained" not in reason for reason in listed.values())
