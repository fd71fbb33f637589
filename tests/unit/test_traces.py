"""Traces: the catalog's checksums, the generators, the detector, the converters, and the command line."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from ccgym.cli.main import main
from ccgym.config.catalog import catalog, resolve_trace, traces_directory
from ccgym.errors import CcgymError, ConfigError, PathNotFoundError, PlatformError, TraceFormatError
from ccgym.tracetools import generate
from ccgym.tracetools.check import check_trace, likely_rate, rate_in_name
from ccgym.tracetools.convert import convert
from ccgym.tracetools.inspect import binned_rates, capacity_steps, opportunities_before, sparkline, summarize
from ccgym.tracetools.text import read_trace, trace_from_times, trace_text, write_trace
from tests.refusals import explained, refused

ENTRIES = sorted(catalog().traces)


def trace(*lines: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.array(lines, dtype=np.uint64)


# --- The catalog --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ENTRIES)
def test_catalog_is_what_it_says(name: str) -> None:
    entry = catalog().traces[name]
    loaded = resolve_trace(name).load()
    times = loaded.times_ms
    assert (len(times), int(times[-1])) == (entry.lines, entry.last_ms)
    assert hashlib.sha256(trace_text(times)).hexdigest() == entry.sha256
    assert loaded.name == name
    if entry.file is not None:
        assert hashlib.sha256((traces_directory() / entry.file).read_bytes()).hexdigest() == entry.sha256
    assert resolve_trace(f"{name}.trace").load() is loaded


def test_every_trace_file_has_a_row_of_provenance() -> None:
    folder = traces_directory()
    readme = (folder / "README.md").read_text()
    declared = {entry.file for entry in catalog().traces.values() if entry.file is not None}
    assert {file.name for file in folder.glob("*.trace")} == declared
    for name in ENTRIES:
        assert f"`{name}`" in readme, f"traces/README.md has no row for {name}"


def test_where_traces_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    for folder in (".", "elsewhere"):
        (tmp_path / folder / "12mbps.trace").write_text("1\n1\n")
        (tmp_path / folder / "mine.trace").write_text("1\n" if folder == "." else "2\n")
    monkeypatch.delenv("CCGYM_TRACE_PATH", raising=False)
    assert resolve_trace("12mbps.trace").entry is not None  # the catalog comes before the working directory
    assert len(resolve_trace("./12mbps.trace").load()) == 2
    assert int(resolve_trace("mine.trace").load().times_ms[0]) == 1
    monkeypatch.setenv("CCGYM_TRACE_PATH", str(tmp_path / "elsewhere"))
    assert int(resolve_trace("mine").load().times_ms[0]) == 2
    assert resolve_trace("traces/77.72mbps.trace").entry is not None  # is made, and so no file
    (tmp_path / "mine.trace").write_text("3\n")
    assert int(resolve_trace("./mine.trace").load().times_ms[0]) == 3  # a changed file is read again
    for wrong in ("nope", "elsewhere/77.72mbps.trace", "", "a\0b", "Verizon-LTE-short", "77.72mbps/x"):
        with refused(PathNotFoundError, "unknown-trace"):
            resolve_trace(wrong)


def test_recorded_traces() -> None:
    recorded = catalog().recorded
    file = Path(recorded.directory, "Verizon-LTE-short.up")
    if not file.is_file():
        with refused(PlatformError, "trace-not-installed"):
            resolve_trace("Verizon-LTE-short.up")
        pytest.skip("needs the package mahimahi-traces: apt-get install mahimahi-traces")
    for name in recorded.names:
        for end in ("up", "down"):
            assert len(resolve_trace(f"{name}.{end}").load()) > 10_000
    assert resolve_trace("Verizon-LTE-short.up").load().name == "Verizon-LTE-short.up"


# --- Reading and writing ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "trace-empty at bad.trace:1"),
        ("1\n\n2\n", "trace-malformed at bad.trace:2"),
        ("1\n2 6250\n", "trace-malformed at bad.trace:2"),
        ("0.5\n", "trace-malformed at bad.trace:1"),
        ("3\n2\n", "trace-unsorted at bad.trace:2"),
        ("0\n0\n", "trace-empty at bad.trace:2"),
        ("1\n99999999999\n", "trace-too-long at bad.trace:2"),
        ("# a trace\n1\n", "trace-malformed at bad.trace:1"),
        ("1\r\n2\r\n", "trace-malformed at bad.trace:1"),
        ("-1\n", "trace-malformed at bad.trace:1"),
    ],
)
def test_parse_errors_name_the_line(tmp_path: Path, text: str, what: str) -> None:
    file = tmp_path / "bad.trace"
    file.write_bytes(text.encode())
    with refused(TraceFormatError, what) as caught:
        read_trace(file)
    assert all((caught.value.found, caught.value.expected, caught.value.hint))


def test_write_and_read(tmp_path: Path) -> None:
    times = trace(0, 1, 1, 5)
    write_trace(tmp_path / "new" / "a.trace", times)
    assert (tmp_path / "new" / "a.trace").read_text() == "0\n1\n1\n5\n"
    assert read_trace(tmp_path / "new" / "a.trace").times_ms.tolist() == [0, 1, 1, 5]
    assert trace_from_times([0, 1, 1, 5], "x").mean_rate_bps == pytest.approx(9_600_000)
    for wrong, code in (
        ([], "trace-malformed"),
        ([3, 2], "trace-unsorted"),
        ([0], "trace-empty"),
        ([-1, 2], "trace-malformed"),
        ([0.5], "trace-malformed"),
        ([[1]], "trace-malformed"),
    ):
        with refused(TraceFormatError, code):
            trace_from_times(wrong, "x")
    with refused(PathNotFoundError, "unknown-trace"):
        read_trace(tmp_path / "none.trace")
    with refused(PlatformError, "file-unreadable"):
        read_trace(tmp_path)
    with refused(PlatformError, "file-unwritable at /proc/nowhere/a.trace"):
        write_trace("/proc/nowhere/a.trace", times)


# --- Generators ------------------------------------------------------------------------------------------------------


def test_constant_rule() -> None:
    assert generate.constant(12_000_000, 5_000_000).tolist() == [0, 1, 2, 3, 4]
    assert generate.constant(6_000_000, 10_000_000).tolist() == [0, 2, 4, 6, 8]
    for rate, duration in ((1, 10**9), (12_000_000, 10**6)):
        with refused(ConfigError, "trace-empty"):
            generate.constant(rate, duration)
    with refused(ConfigError, "trace-too-long"):
        generate.constant(10**12, 3600 * 10**9)


def test_poisson_rule() -> None:
    times = generate.poisson(2_640_000, seed=1, cold_start_ns=5 * 10**9).astype(np.int64)
    assert times[:50].tolist() == list(range(100, 5001, 100))
    assert 60_000 <= times[-1] < 60_100
    gaps = np.diff(times[50:])
    # Reference §5: gap CV ≈ 0.99, variance of counts ≈ mean.
    assert gaps.std() / gaps.mean() == pytest.approx(1.0, abs=0.05)
    assert gaps.mean() == pytest.approx(12 / 2.64, rel=0.03)
    counts = np.histogram(times[50:], bins=np.arange(5000, 60_000, 100))[0]
    assert counts.var() / counts.mean() == pytest.approx(1.0, abs=0.2)
    assert (generate.poisson(2_640_000, seed=1, cold_start_ns=5 * 10**9) == times).all()
    assert generate.poisson(2_640_000, seed=2).tolist() != generate.poisson(2_640_000, seed=1).tolist()
    with refused(ConfigError, "out-of-range"):
        generate.poisson(10**6, 10**9, seed=1, cold_start_ns=10**9)
    with refused(ConfigError, "out-of-range"):
        generate.poisson(10**6, seed=-1)


def test_random_generators_never_change() -> None:
    """A seed is a promise: these are the traces of this version and of every later one."""
    poisson = generate.poisson(5_000_000, 10**9, seed=7)
    cellular = generate.cellular(5_000_000, 10**9, seed=7)
    assert (
        hashlib.sha256(trace_text(poisson)).hexdigest()
        == "d1b5d2ee96c23171d3ebe255d01d4772c3426fe61eddf663435afd2ebf27d26d"
    )
    assert (
        hashlib.sha256(trace_text(cellular)).hexdigest()
        == "03445edd68f25fcb50ab42d65056bb6aa65505d42f51032eeba43302c0ae45fa"
    )


def test_stepped_rule() -> None:
    times = generate.stepped([(0, 16_000_000), (3_750_000_000, 256_000_000)], 15 * 10**9)
    _, rates = binned_rates(times, 250, 15_000)
    assert rates[:15] == pytest.approx(np.full(15, 16.0), rel=0.01)
    assert rates[16:] == pytest.approx(np.full(44, 256.0), rel=0.01)
    closed = generate.stepped([(0, 12_000_000), (10**9, 0), (2 * 10**9, 0)], 3 * 10**9)
    assert closed.tolist() == [*range(1000), 3000]  # a closed end keeps the period
    for steps, code in (
        ([], "order-wrong"),
        ([(5, 10**6)], "order-wrong"),
        ([(0, 10**6), (0, 10**6)], "order-wrong"),
        ([(0, 10**6), (20 * 10**9, 10**6)], "out-of-range"),
    ):
        with refused(ConfigError, code):
            generate.stepped(steps, 15 * 10**9)


def test_cellular_model() -> None:
    traces = [generate.cellular(6_000_000, seed=seed) for seed in range(30)]
    assert {summarize(times).mean_rate_mbps for times in traces} == {6.0}
    spread = [np.std(binned_rates(times, 500, 60_000)[1]) for times in traces]
    assert 2.0 < np.mean(spread) < 4.0, "a walk, and no constant rate"
    assert 0.02 < np.mean([summarize(times).stalled_share for times in traces]) < 0.15
    assert all(int(times[-1]) == 60_000 for times in traces)
    still = generate.cellular(6_000_000, seed=1, volatility=0.0)
    counts, _ = np.histogram(still, bins=600)
    assert counts.var() / counts.mean() == pytest.approx(1.0, abs=0.2), "a Poisson process"
    assert len(generate.cellular(5_000_000, 1_234_567_890, seed=1)) == 514  # 1234 ms · 5 Mbit/s / 12 kbit = 514.2
    for arguments in ({"volatility": -1.0}, {"volatility": float("nan")}, {"outage_escape_hz": 0.0}):
        with refused(ConfigError, "out-of-range"):
            generate.cellular(6_000_000, seed=1, **arguments)


# --- Looking ---------------------------------------------------------------------------------------------------------


def test_opportunities_wrap_as_mahimahi_does() -> None:
    # Reference §1.1: 5,10,10,20 fires at 5,10,10,20,25,30,30,40 …
    at = np.array([0, 5, 6, 10, 11, 20, 21, 25, 26, 31, 41])
    assert opportunities_before(trace(5, 10, 10, 20), at).tolist() == [0, 0, 1, 1, 3, 3, 4, 4, 5, 7, 8]
    # 0,1,2,3 gives four opportunities per 3 ms.
    assert opportunities_before(trace(0, 1, 2, 3), np.array([1, 3, 4, 7, 301])).tolist() == [1, 3, 5, 9, 401]


def test_summary() -> None:
    summary = summarize(trace(100, 100, 110, 400))
    assert (summary.lines, summary.period_ms, summary.distinct_times) == (4, 400, 3)
    assert summary.mean_rate_mbps == pytest.approx(0.12)
    assert (summary.largest_gap_ms, summary.largest_gap_at_ms) == (290, 110)
    assert (summary.largest_burst, summary.largest_burst_at_ms) == (2, 100)
    assert summary.stalled_share == pytest.approx(290 / 400)
    assert sparkline(trace(*range(1, 101)), 10) == "█" * 10
    assert sparkline(trace(*range(50), 100), 10).startswith("█████ ")


def test_capacity_of_constant_and_bursty_traces_is_their_mean() -> None:
    assert capacity_steps(resolve_trace("77.72mbps").load()) == ((0, 77_721_295),)
    assert capacity_steps(trace(1)) == ((0, 12_000_000),)
    assert capacity_steps(resolve_trace("10-every-200").load()) == ((0, 600_000),)


# --- The detector ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("lines", "meant"), [(4166, "50mbps"), (83, "1mbps")])
def test_detector_names_the_mistake_of_the_student_report(lines: int, meant: str) -> None:
    """Document 002: packets per second, each line the packet size, read as milliseconds."""
    for arguments in ({}, {"declared_rate": meant, "declared_rtt": "10ms"}, {"name": f"{meant}_10ms.trace"}):
        (finding,) = check_trace(np.full(lines, 1500, dtype=np.uint64), **arguments)
        assert (finding.severity, finding.code) == ("error", "all-lines-equal")
        assert f"ccgym paths make constant --rate {meant}" in finding.remedy


@pytest.mark.parametrize(
    ("lines", "arguments", "codes"),
    [
        ([1], {}, []),
        ([1] * 9, {}, []),
        ([100], {}, []),
        ([200] * 10, {}, ["all-lines-equal"]),
        (range(1, 60_001), {"declared_rate": "50mbps"}, ["rate-mismatch"]),
        (range(1, 60_001), {"name": "50mbps_10ms.trace"}, ["rate-mismatch"]),
        (range(1, 60_001), {"name": "12mbps.trace"}, []),
        (range(1, 60_001), {"declared_rate": "12.5mbps"}, []),
        ([*range(1, 500), *range(700, 1000)], {}, ["long-gap"]),
        ([*range(1, 500), *range(699, 1000)], {"declared_rtt": 0.04}, []),
        ([*range(1, 500), *range(700, 1000)], {"declared_rtt": "30ms"}, ["long-gap"]),
        ([*range(1, 50), *([50] * 5), *range(51, 97)], {}, []),  # 5 of 100 lines
        ([*range(1, 50), *([50] * 20), *range(51, 200)], {}, ["burst"]),
        ([t for second in range(1000, 11_000, 1000) for t in [second] * 1000], {}, ["long-gap", "burst"]),
    ],
)
def test_detector(lines: list[int], arguments: dict[str, object], codes: list[str]) -> None:
    assert [finding.code for finding in check_trace(trace(*lines), **arguments)] == codes  # type: ignore[arg-type]


def test_a_name_is_no_trace() -> None:
    with pytest.raises(TraceFormatError) as refused:
        check_trace("12mbps.trace")  # type: ignore[arg-type]
    assert refused.value.code == "trace-malformed"


def test_detector_names_causes_of_a_wrong_rate() -> None:
    per_ms = trace(*range(1, 60_001))
    for rate, part in (("50mbps", "one line per millisecond is 12"), ("96mbps", "bits were read as bytes")):
        assert part in check_trace(per_ms, rate)[0].cause
    second = generate.constant(50_000_000, 10**9)
    assert "one second at that rate" in check_trace((second * 5).astype(np.uint64), "50mbps")[0].cause


def test_only_an_evenly_spaced_trace_is_to_be_made_constant() -> None:
    for times, constant in ((generate.constant(6_000_000), True), (generate.cellular(6_000_000, seed=3), False)):
        (finding,) = (one for one in check_trace(times, "12mbps") if one.code == "rate-mismatch")
        assert ("paths make constant" in finding.remedy) is constant
    assert not [one for one in check_trace(generate.cellular(6_000_000, seed=3), "6mbps") if one.code != "long-gap"]


def test_rates_in_names_and_likely_rates() -> None:
    assert rate_in_name("traces/50mbps_10ms.trace") == 50_000_000
    assert rate_in_name("0.57mbps-poisson.trace") == 570_000
    assert rate_in_name("link-1Gbit.trace") == 10**9
    assert rate_in_name("Verizon-LTE-short.up") is None
    assert rate_in_name("10-every-200") is None
    assert [likely_rate(4166), likely_rate(83), likely_rate(6476)] == [50_000_000, 1_000_000, 77_720_000]


# --- Converters ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "text", "arguments", "lines"),
    [
        # The traces that the student's repository holds: "time, 6250 bytes", four packets per line and a rest.
        ("time-bytes", "0 6250\n1 6250\n2 6250\n", {"time_unit": "ms"}, [0] * 4 + [1] * 4 + [2] * 4),
        ("time-bytes", "time,bytes\n10.000,1500\n10.002,750\n10.003,750\n", {}, [0, 3]),
        ("time-rate", "0 12\n0.005 24\n0.010 0\n", {}, [0, 1, 2, 3, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 15]),
        # mm-rate-to-events: 12,000 bits per line, the first line is ms 0.
        ("kbit-per-ms", "6\n6\n24\n", {}, [1, 2, 2]),
        ("times", "# seconds\r\n0.001\r\n\r\n0.0025\r\n", {}, [1, 2]),
        ("times", "1 \n 2\n", {"time_unit": "ms"}, [1, 2]),
    ],
)
def test_converters(form: str, text: str, arguments: dict[str, str], lines: list[int]) -> None:
    assert convert(text, form, **arguments).tolist() == lines


@pytest.mark.parametrize(
    ("form", "text", "part"),
    [
        ("time-byte", "0 1", "unknown-choice at input"),
        ("time-bytes", "", "trace-empty at input"),
        ("time-bytes", "0 1\n5\n", "trace-malformed at input:2"),
        ("time-bytes", "0 1\nx y\n", "trace-malformed at input:2"),
        ("time-bytes", "5 1\n4 1\n", "trace-unsorted at input:2"),
        ("time-bytes", "0 1\n1 1\n", "trace-too-long at input"),
        ("time-rate", "0 1e12\n", "trace-too-long at input"),
        ("time-rate", "0 -5\n", "trace-malformed at input:1"),
        ("times", "0.2\n0.1\n", "trace-unsorted at input"),
        ("times", "0\n", "trace-empty at input"),
        ("times", "1e17\n", "trace-too-long at input"),
        ("kbit-per-ms", "nan\n", "trace-malformed at input:1"),
    ],
)
def test_converters_refuse(form: str, text: str, part: str) -> None:
    with refused(CcgymError, part):
        convert(text, form)


# --- The command line ------------------------------------------------------------------------------------------------


def test_a_misspelled_folder_is_not_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["paths", "make", "constant", "--rate", "5mbps", "-o", str(tmp_path / "tracs" / "a.trace")]) == 2
    explained(capsys.readouterr().err, "folder-missing at --output")
    assert list(tmp_path.iterdir()) == []


def test_trace_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["paths", "make", "constant", "--rate", "50mbps", "-o", "50mbps.trace"]) == 0
    assert "250000 lines, 59999 ms, 50.0008 Mbit/s" in capsys.readouterr().out
    assert (tmp_path / "50mbps.trace").read_bytes() == trace_text(resolve_trace("50mbps").load().times_ms)
    steps = ["--step", "0s=16mbps", "--step", "1s=0", "--step", "2s=32mbps", "--duration", "3s", "-o", "step.trace"]
    assert main(["paths", "make", "stepped", *steps]) == 0
    assert main(["paths", "make", "poisson", "--rate", "5mbps", "--seed", "3", "-o", "p.trace"]) == 0
    assert main(["paths", "make", "cellular", "--rate", "5mbps", "-o", "c.trace"]) == 0
    assert main(["paths", "make", "named", "77.72mbps", "-o", "n.trace"]) == 0
    assert main(["paths", "check", "./50mbps.trace", "77.72mbps", "10-every-200"]) == 0
    assert capsys.readouterr().out.count("no problems found") == 3
    (tmp_path / "bad.trace").write_text("1500\n" * 4166)
    assert main(["paths", "check", "bad.trace", "--rate", "50mbps", "--rtt", "10ms"]) == 1
    assert "4166 packets at once every 1.5 s" in capsys.readouterr().out
    assert main(["paths", "check", "step.trace"]) == 0
    assert main(["paths", "check", "--strict", "step.trace"]) == 1
    (tmp_path / "log.txt").write_text("0 6250\n1 6250\n2 6250\n")
    assert main(["paths", "convert", "log.txt", "--from", "time-bytes", "--time-unit", "ms", "-o", "l.trace"]) == 0
    assert main(["paths", "--traces"]) == 0
    assert "77.72mbps" in capsys.readouterr().out
    assert main(["paths", "show", "77.72mbps"]) == 0
    shown = capsys.readouterr().out
    assert "388600 at 60000 instants" in shown
    assert "77.7213 Mbit/s" in shown
    assert "█████" in shown


def test_trace_show_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, file in (("2.64mbps-poisson", "a.png"), ("12mbps", "b.svg"), ("10-every-200", "c.pdf")):
        assert main(["paths", "show", name, "--plot", str(tmp_path / file)]) == 0
        assert (tmp_path / file).stat().st_size > 3000
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert main(["paths", "show", "12mbps", "--plot", str(tmp_path / "a.xyz")]) == 2
    explained(capsys.readouterr().err, "unknown-suffix at --plot")


def test_other_commands(capsys: pytest.CaptureFixture[str]) -> None:
    for words, part in (
        (["paths"], "AWS Korea to China"),
        (["paths", "--json"], '"77.72mbps"'),
        (["paths", "show", "77.72mbps"], "base RTT  102 ms"),
        (["paths", "show", "--spec", "77.72mbps"], '"packets": 94'),
        (["paths", "show", "--mahimahi", "policer-12mbps-rtt20"], "/12mbps.trace"),
        (["schemes"], "TCP Cubic"),
        (["schemes", "show", "cubic"], "RFC 9438"),
    ):
        assert main(words) == 0, words
        assert part in capsys.readouterr().out
