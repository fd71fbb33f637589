"""Results in the formats of other programs: what is in the files is what was recorded."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import ccgym
from ccgym.errors import ConfigError, ResultsError
from ccgym.evaluation.exchange import Recorded, write_run
from ccgym.evaluation.exchange.recorded import LOST, Packets
from ccgym.evaluation.results import ResultSet
from ccgym.evaluation.run_record import RunRecord
from tests.commands import convert as main
from tests.commands import evaluate
from tests.refusals import explained, refused

PATH = ccgym.NetworkPath(rate="12mbps", rtt="20ms", queue="20p", loss=0.01)


@pytest.fixture(scope="module")
def record() -> RunRecord:
    flows = ["cubic", {"scheme": "bbr", "start": 0.5}]
    return ccgym.simulate(PATH, flows, 3, seed=1, record=ccgym.Record(acks=True))


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("evaluated")
    words = ["--trace", "12mbps", "--schemes", "bbr,cubic", "--runs", "2", "--runtime", "2", "--flows", "2"]
    assert evaluate([*words, "--no-figures", "--logs", "first", "--out", str(out)]) == 0
    return out


def test_packets_of_a_log_are_those_of_the_run(record: RunRecord) -> None:
    assert record.packets is not None
    known, found = Recorded.of(record).data, Packets.of_log(record.packets)
    entered_ns, left_ns = ((ns + 500) // 1000 * 1000 for ns in (known.entered_ns, known.left_ns))  # as logs count
    left_ns[known.left_ns == LOST] = LOST
    assert np.array_equal(entered_ns, found.entered_ns)
    assert np.array_equal(known.flow, found.flow)
    assert np.array_equal(np.sort(left_ns), np.sort(found.left_ns))
    # Of packets that entered at the same instant a log does not say which one left: rate and counts agree all the same.
    assert np.mean(left_ns == found.left_ns) > 0.95


def packets_of(content: bytes) -> list[tuple[int, int, bytes]]:
    """Time in nanoseconds, length and captured bytes of each packet of a capture."""
    magic, major, minor, _, _, snap, link = struct.unpack_from("<IHHiIII", content)
    assert (magic, major, minor, snap, link) == (0xA1B23C4D, 2, 4, 36, 101)
    found, at = [], 24
    while at < len(content):
        seconds, nanoseconds, captured, length = struct.unpack_from("<IIII", content, at)
        found.append((seconds * 10**9 + nanoseconds, length, content[at + 16 : at + 16 + captured]))
        at += 16 + captured
    return found


def checksum(header: bytes) -> int:
    total = sum(struct.unpack(">10H", header))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def test_a_capture_has_every_packet_to_the_nanosecond(record: RunRecord, tmp_path: Path) -> None:
    run = Recorded.of(record)
    write_run(run, tmp_path / "run.pcap")
    found = packets_of((tmp_path / "run.pcap").read_bytes())
    data = [one for one in found if one[2][19] == 2]  # to 10.0.N.2
    assert [time for time, _, _ in data] == run.data.entered_ns.tolist()
    assert [length for _, length, _ in data] == run.data.size.tolist()
    assert [one[2][18] for one in data] == run.data.flow.tolist()
    assert [int.from_bytes(one[2][28:], "big") for one in data] == run.data.number.tolist()
    assert len(found) - len(data) == np.count_nonzero(run.acks.arrived)
    assert all(checksum(one[2][:20]) == 0xFFFF for one in found)
    times = [time for time, _, _ in found]
    assert times == sorted(times)
    write_run(run, tmp_path / "other.pcap", at="receiver")
    other = packets_of((tmp_path / "other.pcap").read_bytes())
    assert sum(one[2][19] == 2 for one in other) == np.count_nonzero(run.data.arrived)
    assert sum(one[2][19] == 1 for one in other) == run.acks.flow.size


def test_a_qlog_has_the_events_of_a_flow(record: RunRecord, tmp_path: Path) -> None:
    run = Recorded.of(record)
    write_run(run, tmp_path / "flow.sqlog", flow=2)
    texts = (tmp_path / "flow.sqlog").read_text().split("\x1e")
    assert texts[0] == ""
    head, *events = [json.loads(text) for text in texts[1:]]
    assert (head["qlog_version"], head["qlog_format"]) == ("0.3", "JSON-SEQ")
    assert head["trace"]["vantage_point"]["type"] == "client"
    times = [one["time"] for one in events]
    assert times == sorted(times)
    by_name: dict[str, list[dict]] = {}  # type: ignore[type-arg]
    for one in events:
        by_name.setdefault(one["name"], []).append(one)
    own = run.data.flow == 2
    sent, lost = by_name["transport:packet_sent"], by_name["recovery:packet_lost"]
    assert [one["data"]["raw"]["length"] for one in sent] == run.data.size[own].tolist()
    missing = np.flatnonzero(~run.data.arrived[own])
    assert {one["data"]["header"]["packet_number"] for one in lost} <= set(missing.tolist())
    assert len(lost) >= len(missing) - 25, "those at the end have no later packets"
    assert all(one["time"] >= sent[one["data"]["header"]["packet_number"]]["time"] for one in lost)
    assert by_name["recovery:metrics_updated"][-1]["data"].keys() <= {
        "smoothed_rtt", "congestion_window", "bytes_in_flight", "pacing_rate",
    }  # fmt: skip
    assert {"smoothed_rtt", "congestion_window"} <= {key for one in events for key in one["data"]}
    write_run(run, tmp_path / "other.sqlog", flow=2, at="receiver")
    received = (tmp_path / "other.sqlog").read_text().split("\x1e")[2:]
    assert len(received) == np.count_nonzero(run.data.arrived[own])
    with refused(ConfigError, "out-of-range at flow"):
        write_run(run, tmp_path / "flow.sqlog", flow=3)


# --- qlog 0.3: the fields of draft-ietf-quic-qlog-main-schema-04 and draft-ietf-quic-qlog-quic-events-04 --------------

HEADER = {
    "packet_type": {"initial", "handshake", "0RTT", "1RTT", "retry", "version_negotiation", "unknown"},
    "packet_number": int,
}
PACKET = {"header": HEADER, "raw": {"length": int, "payload_length": int}}
EVENTS: dict[str, dict[str, Any]] = {
    "transport:packet_sent": PACKET,
    "transport:packet_received": PACKET,
    "recovery:packet_lost": {
        "header": HEADER, "trigger": {"reordering_threshold", "time_threshold", "pto_expired"},
    },
    "recovery:metrics_updated": {
        "smoothed_rtt": (int, float), "congestion_window": int, "bytes_in_flight": int, "pacing_rate": int,
    },
}  # fmt: skip
HEAD: dict[str, Any] = {
    "qlog_format": {"JSON-SEQ"}, "qlog_version": str, "title": str, "description": str,
    "trace": {
        "title": str, "description": str, "common_fields": dict,
        "vantage_point": {
            "name": str, "type": {"client", "server", "network", "unknown"}, "flow": {"client", "server"},
        },
    },
}  # fmt: skip


def keeps_to(found: dict[str, Any], fields: dict[str, Any]) -> None:
    """No other fields, and each of its type or one of its words; whole numbers are not negative."""
    assert found.keys() <= fields.keys()
    for name, value in found.items():
        if isinstance(fields[name], dict):
            keeps_to(value, fields[name])
        elif isinstance(fields[name], set):
            assert value in fields[name]
        else:
            assert isinstance(value, fields[name]), name
            assert fields[name] is not int or 0 <= value < 2**64


@pytest.mark.parametrize("at", ["sender", "receiver"])
def test_a_qlog_keeps_to_the_schema(record: RunRecord, tmp_path: Path, at: Literal["sender", "receiver"]) -> None:
    write_run(Recorded.of(record), tmp_path / "flow.sqlog", at=at)
    content = (tmp_path / "flow.sqlog").read_bytes()
    first, head, *events = content.split(b"\x1e")
    assert first == b""
    assert all(text.endswith(b"\n") and text.count(b"\n") == 1 for text in (head, *events)), "RFC 7464"
    keeps_to(json.loads(head), HEAD)
    assert {"qlog_format", "qlog_version", "trace"} <= json.loads(head).keys()
    for event in map(json.loads, events):
        assert isinstance(event["time"], (int, float))
        keeps_to(event["data"], EVENTS[event["name"]])
        assert "header" in event["data"] or event["name"] == "recovery:metrics_updated"
    assert len(events) > 1000


def test_a_file_of_flent_has_rates_and_delays(record: RunRecord, tmp_path: Path) -> None:
    run = Recorded.of(record)
    write_run(run, tmp_path / "run.flent.gz")
    document = json.loads(gzip.decompress((tmp_path / "run.flent.gz").read_bytes()))
    results = document["results"]
    assert document["version"] == 4
    assert document["metadata"]["NAME"] == "tcp_nup"
    assert document["metadata"]["TEST_PARAMETERS"] == {"upload_streams": "2"}
    assert len(document["x_values"]) == 30
    assert all(len(values) == 30 for values in results.values())
    assert [one["val"] for one in document["raw_values"]["TCP upload::2"]] == results["TCP upload::2"]
    bits = sum(results["TCP upload sum"]) * 1e6 * 0.1
    assert bits == pytest.approx(8 * run.data.size[run.data.arrived].sum(), rel=1e-6)
    delays = [value for value in results["Ping (ms) ICMP"] if value is not None]
    assert 10 <= min(delays) <= max(delays) <= 40  # 10 ms one way, and 20 packets of a millisecond each


def test_other_suffixes_and_records_without_packets_are_refused(record: RunRecord, tmp_path: Path) -> None:
    with refused(ConfigError, "unknown-suffix"):
        write_run(Recorded.of(record), tmp_path / "run.txt")
    with refused(ResultsError, "not-recorded"):
        Recorded.of(ccgym.simulate(PATH, ["cubic"], 1))
    with refused(ResultsError, "not-recorded"):
        Recorded.of(RunRecord.from_json(record.to_json()))


# --- The command ---------------------------------------------------------------------------------------------------


def test_runs_of_a_directory_are_converted(evaluated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("bbr.pcap", "bbr.sqlog", "bbr.flent.gz"):
        assert main([str(evaluated), str(tmp_path / name), "--run", "bbr"]) == 0
    known = next(cell for cell in ResultSet.load(evaluated).cells if (cell.scheme, cell.run) == ("bbr", 1))
    sent = sum(flow.sent_packets or 0 for flow in known.record.flows)
    found = packets_of((tmp_path / "bbr.pcap").read_bytes())
    data = [one for one in found if one[2][19] == 2]
    # Connecting is a packet of its own.
    assert sent <= len(data) <= sent + 2
    assert data[0][0] >= int(known.started_epoch_s) * 10**9
    assert b"smoothed_rtt" in (tmp_path / "bbr.sqlog").read_bytes()
    assert main([str(evaluated / "bbr_datalink_run1.log"), str(tmp_path / "one.pcap")]) == 0
    assert len(packets_of((tmp_path / "one.pcap").read_bytes())) == len(data)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run.pcap"], "unknown-name at --run"),
        (["run.pcap", "--run", "bbr:2"], "unknown-name at --run"),
        (["run.pcap", "--run", "bbr", "--at", "home"], "unknown-choice at --at"),
        (["run.pcap", "--run", "bbr", "--table", "flows"], "options-conflict"),
        (["run.sqlog", "--run", "bbr", "--flow", "3"], "out-of-range at flow"),
        (["run.txt", "--run", "bbr"], "unknown-suffix at TARGET"),
        (["flows.parquet", "--run", "bbr"], "options-conflict"),
        (["flows.parquet", "--table", "flow"], "unknown-choice at --table"),
    ],
)
def test_mistakes_are_named(
    words: list[str], said: str, evaluated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(evaluated), str(tmp_path / words[0]), *words[1:]]) == 2
    explained(capsys.readouterr().err, said)
    assert not list(tmp_path.iterdir())


def test_without_pyarrow_the_error_says_what_to_install(
    evaluated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    assert main([str(evaluated), str(tmp_path / "flows.parquet")]) == 2
    explained(capsys.readouterr().err, "package-missing")


def test_tables(evaluated: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
    feather = pytest.importorskip("pyarrow.feather", reason="needs pyarrow")
    results = ResultSet.load(evaluated)
    for table, rows in (("flows", 2 * 2 * 2), ("series", 2 * 2 * 2 * 20)):
        assert main([str(evaluated), str(tmp_path / "t.parquet"), "--table", table]) == 0
        assert parquet.read_table(tmp_path / "t.parquet").num_rows == rows
    assert main([str(evaluated), str(tmp_path / "t.arrow")]) == 0
    flows = feather.read_table(tmp_path / "t.arrow")
    assert flows.column("seed").to_pylist() == [cell.record.seed for cell in results.cells for _ in (1, 2)]
    frame, known = flows.to_pandas(), results.to_pandas()
    assert list(frame.columns) == list(known.columns)
    assert np.allclose(frame["throughput_mbps"], known["throughput_mbps"])
    assert main([str(evaluated), str(tmp_path / "t.parquet"), "--table", "packets"]) == 0
    packets = parquet.read_table(tmp_path / "t.parquet")
    assert set(packets.column("run").to_pylist()) == {1}, "the runs with packet logs"
    assert packets.column("left_s").null_count == packets.column("one_way_delay_ms").null_count > 0
