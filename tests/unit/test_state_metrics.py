"""Metrics of the states of a scheme and of the frames of a video, and the cases that are about them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ccgym.config.path import NetworkPath
from ccgym.evaluation.prepared_run import Record
from ccgym.evaluation.run import parse_contenders
from ccgym.evaluation.simulate import simulate
from ccgym.experiments.load import load_experiment
from ccgym.experiments.metrics import Measured, read_metric
from ccgym.experiments.request import Request
from ccgym.experiments.views.verdicts import run_experiments

PATH = {"rate": "12mbps", "rtt": "40ms", "queue": "160p"}


def measured(flow: Any, duration: str, *, packets: bool = False) -> Measured:
    record = simulate(PATH, [flow], duration, record=Record(packets=packets, series="10ms"))
    return Measured(NetworkPath.from_any(PATH), record)


def value(run: Measured, metric: str, **options: Any) -> float | None:
    return read_metric("one", {"metric": metric, **options}).of(run)


def with_states(run: Measured, names: str) -> Measured:
    """The run, its first samples in states of one letter each."""
    count = len(run.sample.t_s)
    states = (tuple(names) + (names[-1],) * count)[:count]
    changed = Measured(run.path, run.record)
    changed.__dict__["sample"] = replace(run.sample, states=(states,))
    return changed


def test_states_are_timed_from_sample_to_sample() -> None:
    run = with_states(measured("bbr3", "100ms"), "AABBBCBBAAA")  # 11 samples, every 10 ms from 0 on
    assert value(run, "state_time", state="B") == pytest.approx(0.5)
    assert value(run, "state_time", state=["B", "C"], to="50ms") == pytest.approx(0.6)
    assert value(run, "state_entry", state="B") == pytest.approx(0.02)
    assert value(run, "state_entry", state="B", **{"from": "30ms"}) == pytest.approx(0.03), "it is in it already"
    assert value(run, "state_entry", state="Z") == pytest.approx(0.1), "never: the end"
    assert value(run, "state_visit", state="B") == pytest.approx(25)
    assert value(run, "state_visit", state="B", percentile=100) == pytest.approx(30)
    assert value(run, "state_visit", state="A") == pytest.approx(20), "the last stay did not end"
    assert value(run, "state_next", state="B", next="C") == pytest.approx(0.5)
    assert value(run, "state_next", state="B", next=["A", "C"]) == pytest.approx(1)
    assert value(run, "state_next", state="Z", next="A") is None


def test_runs_tell_the_states_of_bbr_and_none_of_reno() -> None:
    run = measured("bbr3", "3s")
    assert run.sample.states[0][:2] == ("Startup", "Startup")
    assert value(run, "state_next", state="Startup", next="Drain") == 1
    rows = run.record.to_pandas("series")
    assert rows["state"].iloc[0] == "Startup"
    assert rows["state"].iloc[-1].startswith("ProbeBW")
    other = measured("reno", "100ms")
    assert other.sample.states == ((),)
    assert value(other, "state_time", state="Startup") is None
    assert other.record.to_pandas("series")["state"].isna().all()


def test_frames_are_late_by_propagation_and_transmission() -> None:
    source = {"kind": "media", "min_rate": "1mbps", "max_rate": "1mbps", "pause": "1s", "resume": "2s"}
    run = measured({"scheme": "fixed_window", "profile": "udp", "source": source}, "4s", packets=True)
    frames = run.record.native.frames(0)  # type: ignore[union-attr]
    captured = frames["captured_ns"] / 1e9
    assert not ((captured > 1) & (captured < 2)).any()
    assert (captured >= 2).any()
    latency = value(run, "frame_latency", to="3.5s")
    # Four packets at most, of 1 ms each, and 20 ms of propagation.
    assert 20 < latency < 25
    largest = value(run, "frame_latency", to="3.5s", percentile=100)
    assert latency <= largest < 30
    assert value(run, "frame_loss", to="3.5s") == 0
    assert value(run, "frame_loss", **{"from": "1.1s", "to": "1.9s"}) is None


def test_our_bbr3_meets_the_draft_s_cases(tmp_path: Path) -> None:
    found = load_experiment("bbr3")
    results = run_experiments(found, Request(out=tmp_path, schemes=parse_contenders("bbr3,reno")))
    verdicts = {test.name: results.outcome(test, "bbr3").verdict for test in results.tests}
    assert set(verdicts.values()) == {"pass"}, verdicts
    assert {results.outcome(test, "reno").verdict for test in results.tests} == {"none"}
    # One case of the draft is about two states.
    assert sum(len(results.outcome(test, "bbr3").conditions) for test in results.tests) == 22 + 1
