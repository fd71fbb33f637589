"""The adversary: candidates and their paths, the minimizer, a search that repeats itself and resumes, finds."""

from __future__ import annotations

import json
import shlex
import threading
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ccgym import _core
from ccgym.cli.main import main
from ccgym.config.catalog import catalog
from ccgym.config.curriculum import read_paths
from ccgym.config.distributions import read_distribution
from ccgym.config.path import NetworkPath
from ccgym.config.yaml_loader import load_yaml
from ccgym.emulation import doctor
from ccgym.emulation.plan import Plan
from ccgym.emulation.process import ProcessOutcome
from ccgym.errors import PlatformError
from ccgym.evaluation import runner
from ccgym.evaluation.backends import real as real_backend
from ccgym.evaluation.probe import Probe
from ccgym.evaluation.results import ResultSet
from ccgym.evaluation.run import contender, parse_contenders
from ccgym.experiments.adversary import run_adversary
from ccgym.experiments.adversary_finds import (
    CATALOG_FILE,
    DISTRIBUTION_FILE,
    FAR,
    KEPT,
    LEAD,
    AdversaryResults,
)
from ccgym.experiments.adversary_search import ORACLE_FLOOR, AdversarySpec, Judge, minimized
from ccgym.experiments.adversary_space import MAX_CHANGE, OPTIONAL, RANGES, Candidate, changed, crossed, drawn
from ccgym.experiments.request import Request
from ccgym.experiments.views.path_result import run_score
from ccgym.report.adversary_report import finds_table, page, terminal
from ccgym.units import Nanoseconds
from tests.commands import evaluate
from tests.results_rows import document_of, rows_of
from tests.watching import Watching

WEAK = "fixed_window:cwnd=8"
"""Uses a slow path, and hardly any of one with a larger product."""
RUN_NS = 3_000_000_000
MINUTE_NS = 60_000_000_000


def hunted(
    directory: Path, schemes: str = WEAK, evaluations: int = 48, confirm: int = 0, **more: Any
) -> AdversaryResults:
    spec = AdversarySpec(evaluations=evaluations, duration=Nanoseconds(RUN_NS), runs=2, finds=2, max_rate_mbps=40.0)
    request = Request(out=directory, schemes=parse_contenders(schemes), confirm=confirm, runtime_ns=RUN_NS)
    return run_adversary(spec, request, **more)


@pytest.fixture(scope="module")
def weak(tmp_path_factory: pytest.TempPathFactory) -> tuple[AdversaryResults, Path]:
    """Finds of a weak scheme, and their directory."""
    directory = tmp_path_factory.mktemp("weak")
    return hunted(directory), directory


# --- Candidates ------------------------------------------------------------------------------------------------------


def within(one: Candidate, max_rate_mbps: float) -> bool:
    bounds = {**RANGES, "rate_mbps": (RANGES["rate_mbps"][0], max_rate_mbps)}
    numbers = {field.name: getattr(one, field.name) for field in fields(one)}
    numbers.pop("rates_mbps")
    slack = max(one.rates_mbps) / min(one.rates_mbps) <= 1.01 * MAX_CHANGE
    rates = all(bounds["rate_mbps"][0] <= rate <= bounds["rate_mbps"][1] for rate in one.rates_mbps)
    rest = all(
        bounds[name][0] <= value <= bounds[name][1] or (name in OPTIONAL and not value)
        for name, value in numbers.items()
    )
    return slack and rates and rest


def test_candidates_stay_within_their_bounds_and_differ() -> None:
    rng = np.random.default_rng(1)
    before = [drawn(rng, 50.0) for _ in range(40)]
    made = list(before)
    for _ in range(10):
        made = [changed(crossed(one, other, rng), rng, 50.0) for one, other in zip(made, reversed(made))]
        assert all(within(one, 50.0) for one in made)
    assert len(set(made)) > 35
    assert len({one.kind for one in before}) > 8
    assert all(sum(bool(getattr(one, name)) for one in before) > 3 for name in OPTIONAL)


def test_a_candidate_is_the_path_that_its_sentence_says() -> None:
    stepping = Candidate((8.0, 64.0), 1.0, 300.0, 0.2, loss=0.01, jitter_ms=2.0, ack_ms=20.0)
    path = stepping.path(2_000_000_000)
    assert path.facts()["capacity"] == [[0, 8_000_000], [1_000_000_000, 64_000_000]]
    assert path.one_way_delay_ms == 150
    assert path.loss == pytest.approx(0.01)
    assert stepping.sentence(2_000_000_000) == (
        "the rate steps from 8 to 64 Mbit/s at 1 s, RTT 300 ms, buffer 0.2 BDP, random loss 1 %, jitter up to 2 ms, "
        "acknowledgements only every 20 ms"
    )
    assert "the rate repeats 8, 64 Mbit/s, 1 s each" in stepping.sentence(MINUTE_NS)
    assert len(stepping.path(MINUTE_NS).facts()["capacity"]) == 60
    plain = Candidate()
    assert plain.sentence(MINUTE_NS) == "12 Mbit/s, RTT 40 ms, buffer 1 BDP"
    assert plain.path(MINUTE_NS).chain == NetworkPath(rate="12mbps", rtt="40ms", queue="1bdp").chain
    slow = replace(stepping, rates_mbps=(8.0, 4.0, 2.0), every_s=30.0)
    assert slow.sentence(3 * 30_000_000_000).startswith("the rate goes 8, 4, 2 Mbit/s, 30 s each")


# --- The minimizer ---------------------------------------------------------------------------------------------------


def test_only_what_matters_remains() -> None:
    one = Candidate((340.0, 47.0, 91.0), 0.77, 210.0, 5.6, loss=0.023, jitter_ms=3.1, ack_ms=14.0)
    found, trials = minimized(one, lambda tried: tried.loss >= 0.005)
    assert found == Candidate(loss=found.loss)
    assert 0.005 <= found.loss <= 0.01
    assert trials < 80
    # What needs a step, a long way and a shallow buffer keeps them, and is rounded.
    found, _ = minimized(one, lambda tried: len(tried.rates_mbps) == 2 and tried.rtt_ms > 100 and tried.buffer_bdp > 3)
    assert len(found.rates_mbps) == 2
    assert not any(getattr(found, name) for name in OPTIONAL)
    assert 100 < found.rtt_ms <= 210
    assert 3 < found.buffer_bdp < 5.6


def test_every_simpler_candidate_is_simpler_and_what_holds_is_never_lost() -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        one = drawn(rng)
        assert all(other.complexity < one.complexity for other in one.simpler())
        held: list[Candidate] = []

        def holds(tried: Candidate, held: list[Candidate] = held, most: float = one.rtt_ms / 2) -> bool:
            held += [tried] if tried.rtt_ms >= most else []
            return tried.rtt_ms >= most

        found, trials = minimized(one, holds, most=25)
        assert trials <= 25
        assert found == (held[-1] if held else one)
    assert list(Candidate().simpler()) == []


# --- The search ------------------------------------------------------------------------------------------------------


def test_a_weak_scheme_is_found_and_explained(weak: tuple[AdversaryResults, Path]) -> None:
    results, _ = weak
    assert results.failures == ()
    assert results.finds
    for find in results.finds:
        assert find.gap.mean >= FAR
        assert find.oracle.score.mean >= ORACLE_FLOOR
        assert find.fair
        assert find.classic.score.mean - find.own.score.mean >= LEAD
        assert find.candidate.complexity <= find.original.complexity
        assert find.candidate.path(RUN_NS).chain == find.network_path().chain
    assert len({find.candidate.kind for find in results.finds}) == len(results.finds)
    assert [find.name for find in results.finds] == [
        f"adversary-{results.schemes[0].scheme.key}-{place}" for place in range(1, len(results.finds) + 1)
    ]


def test_a_find_keeps_most_of_its_gap(weak: tuple[AdversaryResults, Path]) -> None:
    """As two runs have it, which the minimizer goes by."""
    results, _ = weak
    judge = Judge(results.spec, Request(out=Path()), None, contender(WEAK))
    for find in results.finds:
        (before,), (after,) = (judge.judged([one], 2) for one in (find.original, find.candidate))
        assert after.gap >= max(FAR, KEPT * before.gap)


def test_a_find_is_replayed_by_its_command_and_scored_as_by_a_scorecard(
    weak: tuple[AdversaryResults, Path], tmp_path: Path
) -> None:
    results, _ = weak
    find = results.finds[0]
    words = shlex.split(find.replay)
    assert words[:2] == ["ccgym", "evaluate"]
    assert evaluate([*words[2:], "--out", str(tmp_path / "again"), "--no-figures"]) == 0
    cells = ResultSet.load(tmp_path / "again").cells
    own_ms = find.network_path().one_way_delay_ms
    scores = {key: [run_score(one, own_ms) for one in cells if one.scheme == key] for key in
              (find.own.key, "oracle", find.classic.key)}  # fmt: skip
    for measured in (find.own, find.oracle, find.classic):
        assert np.mean(scores[measured.key]) == pytest.approx(measured.score.mean, abs=1e-9)


def test_the_same_seed_finds_the_same_and_what_is_kept_is_not_run_again(
    weak: tuple[AdversaryResults, Path], tmp_path: Path
) -> None:
    results, directory = weak

    with pytest.raises(KeyboardInterrupt):
        hunted(tmp_path, observer=Watching(stop_after=1))
    begun = {file.name: file.stat().st_mtime_ns for file in (tmp_path / "runs").iterdir()}
    assert begun
    again = hunted(tmp_path)
    assert [replace(find, replay="") for find in again.finds] == [replace(find, replay="") for find in results.finds]
    assert again.schemes[0].searched.history == results.schemes[0].searched.history
    kept = {file.name: file.stat().st_mtime_ns for file in (tmp_path / "runs").iterdir()}
    assert begun.items() <= kept.items()
    assert {file.name for file in (directory / "runs").iterdir()} == kept.keys()


def test_a_budget_is_time_of_runs_so_that_what_is_kept_ends_at_the_same_candidate(tmp_path: Path) -> None:
    spec = AdversarySpec(budget_s=0.4, duration=Nanoseconds(1_000_000_000), runs=1, finds=1, max_rate_mbps=20.0)
    request = Request(out=tmp_path, schemes=parse_contenders("vegas"), runtime_ns=1_000_000_000)
    first, again = (run_adversary(spec, request) for _ in range(2))
    assert first.schemes[0].searched == again.schemes[0].searched
    assert first.schemes[0].searched.evaluations % 16 == 0


# --- Files -----------------------------------------------------------------------------------------------------------


def test_finds_are_paths_a_catalog_and_a_distribution(weak: tuple[AdversaryResults, Path]) -> None:
    results, directory = weak
    entries: Mapping[str, Any] = load_yaml(directory / CATALOG_FILE).data["paths"]
    assert list(entries) == [find.name for find in results.finds]
    for find in results.finds:
        path = NetworkPath.from_any(str(directory / "paths" / f"{find.name}.yaml"))
        assert (path.name, path.title, path.chain) == (find.name, find.sentence, find.network_path().chain)
        assert NetworkPath(**entries[find.name]["path"]).chain == path.chain
        assert "seed 1" in path.source
    paths = read_distribution(load_yaml(directory / DISTRIBUTION_FILE).data["paths"])
    assert paths.sample(np.random.default_rng(1)).uplink
    stored = document_of(directory)
    assert stored["kind"] == "adversary"
    assert {row["scheme"] for row in rows_of(directory)} >= {find.scheme for find in results.finds}
    assert stored["schemes"][0]["finds"][0]["sentence"] == results.finds[0].sentence


def test_the_report_says_what_was_found_and_what_not(weak: tuple[AdversaryResults, Path]) -> None:
    results, _ = weak
    table = finds_table(results)
    assert [table.text(row, "name") for row in table.rows] == [find.name for find in results.finds]
    assert {table.text(row, "real") for row in table.rows} == {"not tried"}
    assert results.finds[0].replay in page(results, Path()).markdown()
    assert any("again" in str(line) for line in terminal(results))
    nothing = replace(results, schemes=(replace(results.schemes[0], finds=()),), unconfirmed="no namespaces")
    table = finds_table(nothing)
    assert [table.text(row, "name") for row in table.rows] == [""]
    assert "NOT CONFIRMED WITH REAL PACKETS: no namespaces" in table.notes


def test_the_command_writes_figures_and_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [WEAK, "--evaluations", "16", "--finds", "1", "--runtime", "2", "--runs", "1", "--max-rate", "20mbps"]
    assert main(["adversary", *words, "--confirm", "0", "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    name = document_of(tmp_path / "out")["schemes"][0]["finds"][0]["name"]
    assert f"again  ccgym evaluate --trace {tmp_path / 'out' / 'paths' / name}.yaml" in said.replace("\n", " ")
    assert (tmp_path / "out" / f"{name}.svg").is_file()
    page = (tmp_path / "out" / "adversary.html").read_text()
    assert name in page
    assert "Figure is missing" not in page


# --- Real packets ----------------------------------------------------------------------------------------------------


def test_a_find_is_confirmed_by_what_real_packets_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run process is replaced by the simulator: then the gap is the same, or none where it lets the scheme win."""

    def run(plan: Plan, halt: threading.Event | None = None) -> ProcessOutcome:
        spec = json.loads(json.dumps(plan.spec))
        if cheating:
            spec["flows"][0]["scheme"], spec["flows"][0]["params"] = "oracle", {}
        return ProcessOutcome(_core.simulate(json.dumps(spec), {}), {"limited": None})

    cheating = False
    monkeypatch.setattr(real_backend, "run_plan", run)
    monkeypatch.setattr(runner, "probe", lambda path, runs_on, seed: Probe(20, 1.0, 1.0))
    monkeypatch.setattr(doctor, "require", lambda name: None)
    find = hunted(tmp_path / "a", evaluations=16, confirm=1).finds[0]
    assert find.real is not None
    assert find.real.confirmed
    assert find.real.gap == pytest.approx(find.gap.mean, abs=0.5)
    cheating = True
    find = hunted(tmp_path / "b", evaluations=16, confirm=1).finds[0]
    assert find.real is not None
    assert not find.real.confirmed
    assert find.real.gap == pytest.approx(0.0, abs=0.1)


def test_it_is_said_loudly_where_packets_cannot_be_real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        raise PlatformError("capability-missing", "no namespaces here", expected="root")

    monkeypatch.setattr(doctor, "require", refuse)
    results = hunted(tmp_path, evaluations=16, confirm=1)
    real = results.finds[0].real
    assert real is not None
    assert real.gap is None
    assert not real.confirmed
    assert "no namespaces here" in results.unconfirmed
    assert any("NOT CONFIRMED" in note for note in finds_table(results).notes)


# --- The finds that come with ccgym ----------------------------------------------------------------------------------

FOUND = [name for name in catalog().paths if name.startswith("adversary-")]


def test_the_distribution_has_every_find() -> None:
    assert FOUND
    assert list(load_yaml(Path("configs/paths/adversary.yaml")).data["names"]) == FOUND
    assert read_paths("adversary").summary().startswith(f"one of {len(FOUND)} paths")


@pytest.mark.parametrize("name", [name for name in FOUND if name.endswith("-1")])
def test_finds_still_hold(name: str) -> None:
    """If a scheme has become better there: search again, docs/studies/adversary.md says how."""
    scheme = name.removeprefix("adversary-").rpartition("-")[0]
    spec = AdversarySpec(runs=1)
    judge = Judge(spec, Request(out=Path()), None, contender(scheme))
    path = NetworkPath.named(name)
    scores = [judge.numbers([path], one, 1)[0] for one in (judge.oracle, judge.scheme)]
    assert all(scores)
    oracle, own = (one[0].score for one in scores if one)
    assert oracle >= ORACLE_FLOOR
    assert oracle - own >= FAR
