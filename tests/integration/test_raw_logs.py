"""Raw logs of Pantheon's tunnel and logs of mm-link: written, merged as Pantheon does, and analyzed."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from ccgym.errors import ResultsError
from ccgym.evaluation.pantheon.directory import PantheonDirectory
from ccgym.evaluation.pantheon.logs import parse_log, read_log
from ccgym.evaluation.pantheon.raw_logs import RawFlow, merged, raw_flows
from ccgym.evaluation.results import ResultSet
from tests.commands import analyze as main
from tests.commands import evaluate
from tests.refusals import refused


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("raw")
    words = ["--mahimahi", MAHIMAHI]
    words += ["--schemes", "bbr,cubic", "--flows", "2", "--runs", "2", "--runtime", "3", "--no-figures"]
    assert evaluate([*words, "--out", str(out), "--logs", "all", "--raw-logs"]) == 0
    return out


MAHIMAHI = "mm-delay 10 mm-loss uplink 0.01 mm-link 12mbps.trace 12mbps.trace --uplink-queue=droptail "
MAHIMAHI += "--uplink-queue-args=packets=20"


def test_the_merge_is_the_log_that_we_merge_ourselves(evaluated: Path) -> None:
    found, alone = raw_flows(evaluated)
    assert not alone
    assert len(found) == 2 * 2 * 2, "schemes, runs, directions"
    for (scheme, run, link), flows in found.items():
        assert [one.flow for one in flows] == [1, 2]
        ours = read_log(evaluated / f"{scheme}_{link}_run{run}.log")
        theirs = merged(flows, evaluated / f"{scheme}_mm_{link}_run{run}.log")
        for name in ("arrival_bytes", "departure_bytes", "opportunity_bytes"):
            assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
        # The link's log says in whole milliseconds when it began; the merge counts from the earliest beginning.
        shift = int(theirs.arrival_ns[0] - ours.arrival_ns[0])
        assert 0 <= shift <= 500_000
        for name, moved in (("arrival_ns", shift), ("departure_ns", shift), ("delay_ns", 0)):
            assert np.array_equal(getattr(theirs, name), getattr(ours, name) + moved), name


def test_raw_logs_alone_are_analyzed(evaluated: Path, tmp_path: Path) -> None:
    kept, out = tmp_path / "kept", tmp_path / "out"
    kept.mkdir()
    for pattern in ("*_uid*", "*_mm_*", "pantheon_metadata.json"):
        for file in evaluated.glob(pattern):
            shutil.copy(file, kept)
    assert main([str(kept), "--out", str(out), "--no-figures", "--include-acklink"]) == 0
    found, known = ResultSet.load(out), ResultSet.load(evaluated)
    assert len(found.cells) == len(known.cells) == 4
    for one, other in zip(found.cells, known.cells):
        assert (one.scheme, one.run, one.invalid) == (other.scheme, other.run, other.invalid)
        for name in ("throughput_mbps", "delay_p95_ms", "loss"):
            ours, theirs = getattr(one.record.total, name), getattr(other.record.total, name)
            assert ours == pytest.approx(theirs, rel=1e-12, abs=1e-12), name
        assert one.record.link.capacity_mbps == pytest.approx(other.record.link.capacity_mbps, rel=2e-3)


def test_a_raw_log_without_its_other_end_is_left_out_by_name(
    evaluated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept, out = tmp_path / "kept", tmp_path / "out"
    kept.mkdir()
    files = sorted(evaluated.glob("*_datalink_*_uid*"))
    for file in files:
        shutil.copy(file, kept)
    gone = kept / next(file.name for file in files if file.name.endswith(".egress"))
    gone.unlink()
    other = gone.with_suffix(".ingress").name
    assert main([str(kept), "--out", str(out), "--no-figures"]) == 0
    said = " ".join("".join(capsys.readouterr()).split())
    assert said.count("left out:") == 1
    assert other.split("_flow")[0] in said
    assert "its other end is missing" in said
    for file in kept.glob("*"):
        if file.name != other:
            file.unlink()
    with refused(ResultsError, "results-missing at kept") as caught:
        PantheonDirectory.open(kept)
    assert other in caught.value.hint


def test_raw_logs_are_written_later_where_they_are_asked_for_later(tmp_path: Path) -> None:
    words = ["--trace", "12mbps", "--schemes", "bbr", "--runs", "1", "--runtime", "1", "--no-figures"]
    words += ["--out", str(tmp_path)]
    assert evaluate(words) == 0
    assert not raw_flows(tmp_path)[0]
    assert evaluate([*words, "--raw-logs"]) == 0
    assert len(raw_flows(tmp_path)[0]) == 2
    before = {file: file.stat().st_mtime_ns for file in tmp_path.glob("*_uid*")}
    assert evaluate([*words, "--raw-logs"]) == 0
    assert {file: file.stat().st_mtime_ns for file in tmp_path.glob("*_uid*")} == before


def test_a_log_of_mm_link_is_analyzed(evaluated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    up = tmp_path / "up.log"
    shutil.copy(evaluated / "cubic_mm_datalink_run1.log", up)
    assert main([str(up), "--out", str(tmp_path / "one"), "--no-figures"]) == 0
    (cell,) = ResultSet.load(tmp_path / "one").cells
    known = next(one for one in ResultSet.load(evaluated).cells if (one.scheme, one.run) == ("cubic", 1))
    assert cell.scheme == "up"
    assert cell.invalid is None
    assert cell.record.duration_s == pytest.approx(3.0, abs=0.05)
    # 4 of 1504 bytes are mahimahi's, and the loss of 1 % is behind the link; the delay is that of its queue alone.
    assert cell.record.total.throughput_mbps == pytest.approx(known.record.total.throughput_mbps * 1.013, rel=0.01)
    assert cell.record.total.delay_p95_ms == pytest.approx((known.record.total.delay_p95_ms or 0) - 10, abs=2)
    kept = tmp_path / "kept"
    kept.mkdir()
    for file in evaluated.glob("*_mm_datalink_*"):
        shutil.copy(file, kept)
    assert main([str(kept), "--out", str(tmp_path / "all"), "--no-figures"]) == 0
    assert [(one.scheme, one.run) for one in ResultSet.load(tmp_path / "all").cells] == [
        ("bbr", 1), ("bbr", 2), ("cubic", 1), ("cubic", 2),
    ]  # fmt: skip


EGRESS = "# mm-tunnelserver egress: 1000.500\n0.400 - 0 - 1500\n0.900 - 1 - 1500\n30.000 - 2 - 1500\n"
INGRESS = "# mm-tunnelclient ingress: 1010.250\n10.650 - 0 - 1500\n11.550 - 1 - 1500\n"


def raw(tmp_path: Path, egress: str = EGRESS, ingress: str = INGRESS) -> RawFlow:
    files = [tmp_path / f"cubic_datalink_run1_flow1_uidabc.log.{side}" for side in ("egress", "ingress")]
    for file, text in zip(files, (egress, ingress)):
        file.write_text(text)
    return RawFlow(1, *files)


def test_the_merge_by_hand(tmp_path: Path) -> None:
    # merge_tunnel_logs.py @23e738c gives these lines (single, then multiple), times since 1000.500.
    known = "0.400 + 1500 1\n0.900 + 1500 1\n20.400 - 1500 20.000 1\n21.300 - 1500 20.400 1\n30.000 + 1500 1\n"
    assert _same(merged([raw(tmp_path)]), known)
    # A clock that runs ahead by 5 ms at the receiver is set back.
    earlier = known.replace("20.400 - 1500 20.000", "15.400 - 1500 15.000").replace(
        "21.300 - 1500 20.400", "16.300 - 1500 15.400"
    )
    assert _same(merged([raw(tmp_path)], ingress_offset_ms=-5), earlier)
    # A sender whose log begins later moves everything else.
    later = merged([raw(tmp_path)], egress_offset_ms=20)
    assert list(later.departure_ns) == [10_650_000, 11_550_000]
    assert list(later.delay_ns) == [0, 400_000]


def _same(found: object, text: str) -> bool:
    other = parse_log(text.splitlines(), "known")
    return all(
        np.array_equal(getattr(found, name), value) for name, value in vars(other).items() if name != "flow_count"
    )


def test_clock_offsets_are_those_of_the_statistics(tmp_path: Path) -> None:
    raw(tmp_path)
    (tmp_path / "cubic_stats_run1.log").write_text("Local clock offset: 2.0 ms\nRemote clock offset: -3.0 ms\n")
    for side, p95 in (("local", 15.4), ("remote", 25.4)):
        (tmp_path / "pantheon_metadata.json").write_text(
            f'{{"cc_schemes": ["cubic"], "mode": "remote", "sender_side": "{side}", "runtime": 30}}'
        )
        out = tmp_path / side
        assert main([str(tmp_path), "--out", str(out), "--no-figures"]) == 0
        assert ResultSet.load(out).cells[0].record.total.delay_p95_ms == pytest.approx(p95)


@pytest.mark.parametrize(
    ("egress", "ingress", "said"),
    [
        (EGRESS, INGRESS.replace("- 1 - 1500", "- 7 - 1500"), "log-malformed"),
        (EGRESS, INGRESS.replace("- 1 - 1500", "- 1 - 1400"), "log-malformed"),
        (EGRESS, INGRESS + "12.0 - 2", "log-malformed at ingress:4"),
        ("", INGRESS, "log-malformed at egress"),
        ("nothing\n", INGRESS, "log-malformed at egress:1"),
    ],
)
def test_damage_is_named(egress: str, ingress: str, said: str, tmp_path: Path) -> None:
    with refused(ResultsError, said):
        merged([raw(tmp_path, egress, ingress)])
