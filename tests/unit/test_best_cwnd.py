"""The best constant windows: the criterion, the search, the table, the command, and how episodes get them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ccgym.cli.main import main
from ccgym.config.agent import AgentConfig, read_agent
from ccgym.config.best_windows import best_window_of, best_windows, read_table, table_text
from ccgym.config.catalog import catalog
from ccgym.config.distributions import presets, read_distribution
from ccgym.config.path import NetworkPath
from ccgym.envs.episode import draw_episode
from ccgym.envs.settings import Settings
from ccgym.envs.simulated_batch import SimulatedBatch
from ccgym.errors import ConfigError
from ccgym.evaluation import best_cwnd
from ccgym.evaluation.best_cwnd import POWER, THROUGHPUT_FIRST, CwndRuns, Search, search_windows
from ccgym.evaluation.simulate import simulate
from ccgym.schemes.flow import FlowSpec, LearnerFlow
from ccgym.units import NS_PER_S
from tests.refusals import explained, refused

SHORT = Search(runs=2, runtime_ns=5 * NS_PER_S)
INDIGO_SYNTHETIC = tuple(presets()["indigo"]["names"][:24])
CALIBRATED = tuple(NetworkPath.named(name).name for name in presets()["indigo_calibrated"]["names"])


def command(words: list[str]) -> int:
    return main(["paths", "best-cwnd", *words])


# --- The criterion ---------------------------------------------------------------------------------------------------


def measured(window: int, throughput: float, rtt: float, loss: float = 0.0) -> CwndRuns:
    return CwndRuns(window, throughput, rtt / 2, rtt, loss)


def test_queueing_within_the_allowance_costs_nothing_and_the_largest_of_equals_wins() -> None:
    on_a_link_of_10 = [measured(8, 8, 40), measured(10, 10, 40), measured(11, 10, 45), measured(13, 10, 52)]
    for criterion in (POWER, THROUGHPUT_FIRST):
        assert criterion.best(on_a_link_of_10, base_rtt_ms=40).window == 11


def test_the_weight_decides_between_throughput_and_delay() -> None:
    # A tenth more throughput for a fifth more delay.
    pair = [measured(5, 10, 100), measured(6, 11, 120)]
    assert POWER.best(pair, base_rtt_ms=60).window == 5
    assert THROUGHPUT_FIRST.best(pair, base_rtt_ms=60).window == 6


def test_loss_counts_as_throughput_that_is_not_there() -> None:
    pair = [measured(10, 10, 40), measured(20, 10, 40, loss=0.1)]
    assert THROUGHPUT_FIRST.best(pair, base_rtt_ms=40).window == 10
    assert POWER.score(measured(1, 0, 40), 40) == POWER.score(measured(1, 1, 40, loss=1), 40) == -np.inf


# --- The search ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rate", "rtt_ms"), [(12, 40), (6, 20), (40, 100)])
def test_on_a_steady_link_it_finds_the_product_of_rate_and_delay_with_the_allowance(rate: int, rtt_ms: int) -> None:
    path = NetworkPath(rate=f"{rate}mbps", rtt=f"{rtt_ms}ms", queue="infinite")
    found = search_windows(path, search=SHORT)
    expected = rate * (rtt_ms + 5) / 12
    for best in found.best:
        assert best.window == pytest.approx(expected, rel=0.01, abs=1)
        assert best.throughput_mbps == pytest.approx(rate, rel=0.01)
        assert best.rtt_p95_ms == pytest.approx(rtt_ms + 5, abs=8 * 1.5 / rate)
        assert best.loss == 0


def test_it_is_finer_where_it_matters() -> None:
    found = search_windows(NetworkPath(rate="12mbps", rtt="40ms", queue="infinite"), search=SHORT)
    tried = [one.window for one in found.tried]
    best = found.best[0].window
    assert tried == sorted(set(tried))
    assert {best - 1, best + 1} <= set(tried)
    assert len(tried) < 60


def test_a_short_queue_is_not_overrun() -> None:
    path = NetworkPath(rate="12mbps", rtt="40ms", queue="2p")
    best = search_windows(path, search=SHORT).best[0]
    assert 38 <= best.window <= 43
    assert best.loss < 0.01


def test_it_goes_on_where_the_best_window_is_beyond_the_grid() -> None:
    # Acknowledgements come every 200 ms, so a window must last ten times as long as the propagation delay says.
    path = NetworkPath.named("ack-aggregation-bursts")
    assert search_windows(path, search=SHORT).best[0].window > 5 * path.bdp_packets


def test_one_run_is_enough_where_seeds_make_no_difference() -> None:
    steady = NetworkPath(rate="5mbps", rtt="20ms", queue="infinite")
    lossy = NetworkPath(rate="5mbps", rtt="20ms", queue="infinite", loss="1%")
    assert search_windows(steady, SHORT).runs == 1
    found = search_windows(lossy, SHORT)
    assert found.runs == 2
    assert found.best[0].loss == pytest.approx(0.01, abs=0.008)


def test_a_path_without_a_link_has_no_best_window() -> None:
    with refused(ConfigError, "path-without-link at path"):
        search_windows(NetworkPath(mahimahi="mm-delay 10"))


@pytest.mark.parametrize("wrong", [{"runs": 0}, {"runtime_ns": 10}])
def test_a_search_needs_runs_of_some_length(wrong: dict[str, Any]) -> None:
    with refused(ConfigError, "out-of-range"):
        Search(**wrong)


# --- The table -------------------------------------------------------------------------------------------------------


def test_the_table_has_indigo_s_links_and_pantheon_s_emulators() -> None:
    emulators = {NetworkPath.named(f"pantheon-{number}").name for number in range(1, 19)}
    assert set(best_windows()) == emulators | set(INDIGO_SYNTHETIC)
    assert len(best_windows()) == 42
    for name, row in best_windows().items():
        assert row.published == catalog().paths[name].expert_cwnd
        assert best_cwnd.is_of(row, Search()), f"`ccgym paths best-cwnd` has to measure {name} again"
        assert row.power_window <= row.window
    assert sum(row.published is not None for row in best_windows().values()) == 30


def test_the_table_is_what_the_search_gives() -> None:
    for name in ("0.57mbps-poisson", "indigo-10mbps-20ms"):
        text = table_text([best_cwnd.window_row(name)])
        assert text.splitlines()[1] in table_text(best_windows().values()).splitlines()


def test_greatest_power_gives_nearly_the_published_windows() -> None:
    rows = best_windows()
    calibrated = {name: rows[name].power_window / (rows[name].published or 1) for name in CALIBRATED}
    assert calibrated.pop("0.57mbps-poisson") == 6 / 5
    assert all(0.97 <= ratio <= 1.05 for ratio in calibrated.values()), calibrated
    synthetic = [rows[name].power_window / (rows[name].published or 1) for name in INDIGO_SYNTHETIC]
    assert np.median(synthetic) == pytest.approx(1.0, abs=0.02)
    # The published table goes in steps of 5 or 10 packets.
    assert all(abs(rows[name].power_window - (rows[name].published or 0)) <= 10 for name in INDIGO_SYNTHETIC)


def test_the_experts_windows_keep_every_training_link_busy_at_less_delay_than_bbr() -> None:
    for name in (*CALIBRATED, *INDIGO_SYNTHETIC):
        row = best_windows()[name]
        assert row.throughput_mbps >= 0.93 * row.rate_mbps
        assert row.loss <= row.random_loss + 0.002
    for name in CALIBRATED:
        row, path = best_windows()[name], NetworkPath.named(name)
        bbr = simulate(path, ["bbr"]).total
        kept = simulate(path, [{"scheme": f"fixed_window:cwnd={row.window}", "profile": "udp"}]).total
        assert kept.delay_p95_ms < bbr.delay_p95_ms


def test_on_the_report_s_path_the_window_meets_what_is_asked_of_indigo() -> None:
    row = best_windows()["77.72mbps"]
    flow = {"scheme": f"fixed_window:cwnd={row.window}", "profile": "udp"}
    total = simulate(NetworkPath.named("77.72mbps"), [flow]).total
    assert total.throughput_mbps >= 74
    assert total.delay_p95_ms <= 64
    assert total.loss <= 0.02


def test_a_table_survives_being_written(tmp_path: Path) -> None:
    file = tmp_path / "windows.csv"
    file.write_text(table_text(best_windows().values()), encoding="utf-8")
    assert read_table(file) == best_windows()
    assert read_table(tmp_path / "none.csv") == {}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("path,", "name,", "file-malformed at windows.csv"),
        ("\n77.72mbps,77.7213", "\n77.72mbps,fast", "wrong-type at windows.csv:6: rate_mbps"),
    ],
)
def test_a_damaged_table_says_where(tmp_path: Path, old: str, new: str, message: str) -> None:
    file = tmp_path / "windows.csv"
    text = table_text(best_windows().values())
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    with refused(ConfigError, message):
        read_table(file)


# --- Looking up ------------------------------------------------------------------------------------------------------


def test_a_path_is_found_by_what_it_is() -> None:
    window = best_windows()["77.72mbps"].window
    named = NetworkPath.named("pantheon-5")
    assert best_window_of(named) == window
    command = named.to_mahimahi()
    assert best_window_of(NetworkPath.from_mahimahi(command)) == window
    assert best_window_of(NetworkPath.from_mahimahi(command, name="mine")) == window
    other = NetworkPath.from_mahimahi(command.replace("51", "52"), name="77.72mbps")
    assert best_window_of(other) is None
    assert best_window_of(NetworkPath(rate="12mbps", rtt="40ms")) is None


def test_a_window_that_leaves_the_link_idle_is_no_target() -> None:
    policer = best_windows()["policer-12mbps-rtt20"]
    assert policer.throughput_mbps < 0.1 * policer.rate_mbps
    assert best_window_of(NetworkPath.named(policer.path)) is None


# --- Episodes --------------------------------------------------------------------------------------------------------

FIELDS = {
    "clock": {"kind": "fixed", "interval": "10ms", "on_ack": True},
    "observation": {"features": ["loss_fraction"]},
    "action": {"map": ["/2", "-10", "+0", "+10", "*2"], "target": "cwnd"},
    "startup": "10p",
}
UNTAUGHT = read_agent(FIELDS)
EXPERT = read_agent({**FIELDS, "expert": "best_window"})
OTHER = read_agent({**FIELDS, "expert": "gain_schedule"})


def drawn_spec(
    paths: object, agent: AgentConfig | None, *learners: LearnerFlow, background: tuple[FlowSpec, ...] = ()
) -> Any:
    source, rng = read_distribution(paths), np.random.default_rng(5)
    return json.loads(draw_episode(source, rng, learners or (LearnerFlow(),), background, agent=agent).spec)


def test_a_flow_alone_on_a_known_path_is_told_its_window() -> None:
    window = best_windows()["77.72mbps"].window
    told = drawn_spec("77.72mbps", EXPERT)
    assert told["flows"][0]["params"] == {"expert_window": window}
    untold = drawn_spec("77.72mbps", None)
    told["flows"][0]["params"].pop("expert_window")
    assert told == untold


@pytest.mark.parametrize(
    ("paths", "agent", "learners", "background"),
    [
        ("77.72mbps", None, (), ()),
        ("77.72mbps", UNTAUGHT, (), ()),
        ("77.72mbps", OTHER, (), ()),
        ("77.72mbps", EXPERT, (LearnerFlow(extra_rtt="10ms"),), ()),
        ("77.72mbps", EXPERT, (LearnerFlow(rtt="150ms"),), ()),
        ("77.72mbps", EXPERT, (LearnerFlow(mss=1000),), ()),
        ("77.72mbps", EXPERT, (LearnerFlow(), LearnerFlow()), ()),
        ("77.72mbps", EXPERT, (), (FlowSpec(scheme="cubic"),)),
        ("aurora", EXPERT, (), ()),
    ],
)
def test_other_agents_flows_and_paths_are_not_told(
    paths: str, agent: AgentConfig | None, learners: tuple[LearnerFlow, ...], background: tuple[FlowSpec, ...]
) -> None:
    assert "expert_window" not in drawn_spec(paths, agent, *learners, background=background)["flows"][0]["params"]


def test_the_expert_aims_at_the_window_of_the_table() -> None:
    settings = replace(Settings.read(path="3.04mbps-poisson"), agent=EXPERT)
    batch = SimulatedBatch(settings, 1)
    batch.begin(0, np.random.default_rng(1))
    actions, targets = batch.refresh_labels()
    assert targets.tolist() == [best_windows()["3.04mbps-poisson"].window]
    for _ in range(6):
        batch.actions[:] = actions
        batch.step()
        actions, _ = batch.refresh_labels()
    assert actions.tolist() == [[2]], "it stays"
    assert batch.step_info(0)["interval"]["cwnd_bytes"] == 80 * 1500, "ten packets, ten more, twice doubled"


def test_every_training_link_of_indigo_has_its_window() -> None:
    source, rng = read_distribution("indigo"), np.random.default_rng(3)
    seen = set()
    for _ in range(200):
        episode = draw_episode(source, rng, (LearnerFlow(),), agent=EXPERT)
        seen.add((episode.path["name"], json.loads(episode.spec)["flows"][0]["params"]["expert_window"]))
    assert seen <= {(name, row.window) for name, row in best_windows().items()}
    assert len(seen) == 30


# --- The command -----------------------------------------------------------------------------------------------------


def test_the_command_writes_the_table_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "tables" / "windows.csv"
    words = ["indigo-5mbps-20ms", "--runs", "1", "--runtime", "2", "--out", str(out)]
    assert command(words) == 0
    rows = read_table(out)
    assert list(rows) == ["indigo-5mbps-20ms"]
    assert rows["indigo-5mbps-20ms"].window == pytest.approx(18.75, abs=1.5)
    assert rows["indigo-5mbps-20ms"].runtime_s == 2
    searched: list[str] = []
    real = best_cwnd.window_row

    def counting(name: str, *rest: Any) -> Any:
        searched.append(name)
        return real(name, *rest)

    monkeypatch.setattr(best_cwnd, "window_row", counting)
    assert command(["pantheon-1", *words]) == 0
    assert searched == ["0.57mbps-poisson"], "the other one was there"
    assert list(read_table(out)) == ["0.57mbps-poisson", "indigo-5mbps-20ms"], "in the catalog's order"
    assert command([*words, "--again"]) == 0
    assert searched[1:] == ["indigo-5mbps-20ms"]
    shown = capsys.readouterr().out
    assert "published" in shown
    assert "indigo-5mbps-20ms" in shown
    assert "20" in shown


def test_a_place_that_cannot_be_written_is_noticed_before_the_search(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    assert command(["77.72mbps", "--out", str(blocked / "windows.csv")]) == 2
    explained(capsys.readouterr().err, "file-unreadable at file/windows.csv")


def test_whatever_is_a_path_can_be_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text("rate: 5mbps\nrtt: 40ms\nqueue: 30p\n")
    words = ["12mbps", "mine.yaml", "--runs", "1", "--runtime", "1", "--out", "w.csv"]
    assert command(words) == 0
    assert set(read_table(tmp_path / "w.csv")) == {"12mbps", "mine.yaml"}
    assert command(["12mbs", "--out", "w.csv"]) == 2
    explained(capsys.readouterr().err, "unknown-path at PATH")


def test_the_table_of_a_checkout_is_written_on_request_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "traces").mkdir()
    monkeypatch.chdir(tmp_path)
    words = ["paths", "best-cwnd", "12mbps", "--runs", "1", "--runtime", "1s"]
    assert main(words) == 0
    assert [str(one.relative_to(tmp_path)) for one in tmp_path.rglob("*.csv")] == ["results/best_windows.csv"]
    assert main([*words, "--out", "traces/best_windows.csv"]) == 0
    assert Path("traces/best_windows.csv").read_bytes() == Path("results/best_windows.csv").read_bytes()
