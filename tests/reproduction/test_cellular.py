"""The experiment ``cellular`` has the groups of Pantheon's report (``docs/studies/cellular.md``) as criteria."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from ccgym.errors import PlatformError
from ccgym.evaluation.run import contenders
from ccgym.experiments.load import load_experiment
from ccgym.experiments.request import Request
from ccgym.experiments.views.verdicts import run_experiments

RECORDED = Path(__file__).parents[2] / "docs" / "data" / "cellular.csv"
EXCEPTIONS = {"ledbat", "pcc", "vivace"}
"""Those that leave their group; the page says why."""
MUSES = {f"muses_{name}" for name in ("c3", "c5", "d", "dtree", "dtree_h0", "dtree_r0", "t")}
WITHOUT_GROUP = {*MUSES, "pcc_experimental", "taova", "vegas"}
"""Two whose programs failed in the report, and Vegas and Muses, which were between the groups or below them."""


def verdicts(text: str) -> dict[str, str]:
    return {row["scheme"]: row["verdict_of_test"] for row in csv.DictReader(text.splitlines())}


def test_recorded_groups() -> None:
    found = verdicts(RECORDED.read_text(encoding="utf-8"))
    assert {name for name, verdict in found.items() if verdict == "fail"} == EXCEPTIONS
    assert {name for name, verdict in found.items() if verdict == "none"} == WITHOUT_GROUP
    assert {name for name, verdict in found.items() if verdict == "pass"} == (
        {
            "bbr",
            "copa_delta_0.5",
            "cubic",
            "fillp",
            "fillp_sheep",
            "indigo",
            "quic",
            "scream",
            "sprout",
            "verus",
            "webrtc",
        }
    )


@pytest.mark.long
def test_the_recording_is_what_comes_out_today(tmp_path: Path) -> None:
    experiment = load_experiment("cellular")
    request = Request(out=tmp_path, schemes=contenders(experiment.schemes, "schemes"))
    try:
        run_experiments(experiment, request)
    except PlatformError as error:
        pytest.skip(f"{error.found}: {error.hint}")
    today = (tmp_path / "cellular.csv").read_text(encoding="utf-8")
    assert verdicts(today) == verdicts(RECORDED.read_text(encoding="utf-8"))
