"""Parsers: what is written is read back, and nothing but a CcgymError ever comes out of a wrong text."""

from __future__ import annotations

import contextlib
import json
import string
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from ccgym.config.mahimahi import OVERHEAD
from ccgym.config.models import (
    AnyElement,
    AnyQueue,
    Delay,
    Drophead,
    Droptail,
    Infinite,
    Intermittent,
    Link,
    LinkDirection,
    Loss,
    MahimahiCodel,
    MahimahiPie,
    OnOff,
)
from ccgym.config.path import NetworkPath
from ccgym.config.quantities import Limit
from ccgym.config.yaml_loader import Loaded, apply_override, parse_yaml, validate
from ccgym.errors import CcgymError
from ccgym.tracetools import generate
from ccgym.tracetools.check import check_trace, find_mistakes, likely_rate
from ccgym.tracetools.convert import FORMATS, convert
from ccgym.tracetools.inspect import binned_rates, capacity_steps, opportunities_before, sparkline, summarize
from ccgym.tracetools.text import parse_trace, trace_text
from ccgym.units import (
    MAX_NS,
    MAX_RATE_BPS,
    Nanoseconds,
    Size,
    format_probability,
    format_rate,
    format_size,
    format_time,
    parse_probability,
    parse_rate,
    parse_size,
    parse_time,
)

# --- Units ----------------------------------------------------------------------------------------------------------


@given(st.integers(1, MAX_RATE_BPS))
def test_rates_round_trip(bps: int) -> None:
    assert parse_rate(format_rate(bps)) == bps


@given(st.integers(0, MAX_NS))
def test_times_round_trip(ns: int) -> None:
    assert parse_time(format_time(ns)) == parse_time(Nanoseconds(ns)) == ns


@given(
    st.one_of(
        st.builds(Size, packets=st.integers(1, 2**32)),
        st.builds(Size, bytes=st.integers(1, 2**48)),
        st.builds(Size, bdp=st.floats(1e-9, 1e6)),
    )
)
def test_sizes_round_trip(size: Size) -> None:
    assert parse_size(format_size(size)) == size


@given(st.floats(0, 1))
def test_probabilities_round_trip(probability: float) -> None:
    assert parse_probability(format_probability(probability)) == probability


@given(st.decimals(0, 10**6, places=6), st.sampled_from(["ns", "us", "ms", "s"]))
def test_times_are_exact(number: Any, unit: str) -> None:
    factor = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}[unit]
    assert parse_time(f"{number}{unit}") == round(Fraction(number) * factor)


junk = st.one_of(
    st.text(max_size=40),
    st.text(alphabet=string.digits + "+-.eE ,%bpsmkMGBkdi/", max_size=20),
    st.integers(),
    st.floats(),
    st.none(),
    st.booleans(),
    st.lists(st.integers(), max_size=3),
)


@given(junk)
@example("1e999999999mbps")
@example("9" * 5000 + "ms")
@example("٣ms")
def test_units_raise_nothing_else(value: Any) -> None:
    for parse in (parse_rate, parse_time, parse_size, parse_probability):
        with contextlib.suppress(CcgymError):
            parse(value)


# --- mahimahi -------------------------------------------------------------------------------------------------------

directions = st.sampled_from(["uplink", "downlink"])
milliseconds = st.integers(1, 100_000).map(lambda ms: f"{ms}ms")
limits = st.builds(Limit, packets=st.integers(1, 10**6), bytes=st.none() | st.integers(1, 10**9)) | st.builds(
    Limit, bytes=st.integers(1, 10**9)
)
queues: st.SearchStrategy[AnyQueue] = st.one_of(
    st.just(Infinite()),
    st.builds(Droptail, limit=limits),
    st.builds(Drophead, limit=limits),
    st.builds(MahimahiCodel, limit=limits, target=milliseconds, interval=milliseconds),
    st.builds(MahimahiPie, limit=limits, qdelay_ref=milliseconds, max_burst=milliseconds),
)
trace_names = st.text(alphabet=string.ascii_letters + string.digits + "._ '\"$%/@", min_size=1, max_size=12).filter(
    lambda name: not name.startswith("-")
)
link_directions = st.builds(LinkDirection, trace=trace_names, queue=queues, overhead=st.just(OVERHEAD))
periods = st.integers(1, 10**12).map(format_time)
elements: st.SearchStrategy[AnyElement] = st.one_of(
    st.builds(Delay, delay=st.integers(0, 10**6).map(lambda ms: f"{ms}ms"), tick=st.just("1ms")),
    st.builds(Loss, direction=directions, probability=st.floats(0, 1)),
    st.builds(OnOff, direction=directions, mean_on=periods, mean_off=periods),
    st.builds(Intermittent, direction=directions, on=periods, off=periods),
    st.builds(Link, uplink=link_directions, downlink=link_directions, once=st.booleans()),
)


@given(st.lists(elements, min_size=1, max_size=5))
def test_mahimahi_round_trips(chain: list[AnyElement]) -> None:
    path = NetworkPath(chain=chain)
    command = path.to_mahimahi()
    assert NetworkPath.from_mahimahi(command) == path
    assert NetworkPath(**path.model_dump()) == path
    assert NetworkPath.model_validate_json(path.model_dump_json()) == path


words = st.sampled_from(
    [
        "mm-delay", "mm-loss", "mm-onoff", "mm-intermittent", "mm-link", "mm-meter", "uplink", "downlink", "51", "0.1",
        "a", "b.trace", "--", "-", "-u", "-d", "--once", "--uplink-queue=droptail", "--uplink-queue", "packets=9",
        "--uplink-queue-args", "--uplink-queue-args=packets=9", "--downlink-queue=codel", "--meter-all", "'", '"',
        "--downlink-queue-args=packets=9,target=5,interval=100", "9" * 400, "1e400", "nan", "-5", "\n", "\\", "",
        "$SHELL",
    ]
)  # fmt: skip


@given(st.one_of(st.lists(words, max_size=12).map(" ".join), st.text(max_size=60).map(lambda text: "mm-delay" + text)))
def test_mahimahi_raises_nothing_else(command: str) -> None:
    with contextlib.suppress(CcgymError):
        path = NetworkPath.from_mahimahi(command)
        assert NetworkPath.from_mahimahi(path.to_mahimahi()) == path


@given(st.lists(words, max_size=10))
def test_mahimahi_takes_words(command: list[str]) -> None:
    with contextlib.suppress(CcgymError):
        NetworkPath.from_mahimahi(command)


# --- Paths ----------------------------------------------------------------------------------------------------------

values = st.recursive(
    st.one_of(
        junk,
        st.sampled_from(
            ["5mbps", "9ms", "1%", "4p", "1bdp", "codel", "77.72mbps", "loss", "delay", "uplink", "12mbps.trace"]
        ),
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["kind", "limit", "target", "rate", "trace", "delay", "direction", "x"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*NetworkPath.ACCEPTED_KEYS, "x"]), values, max_size=5))
def test_paths_raise_nothing_else(arguments: dict[str, Any]) -> None:
    with contextlib.suppress(CcgymError):
        NetworkPath(**arguments)
    with contextlib.suppress(CcgymError):
        NetworkPath.from_any(arguments)


@given(
    st.one_of(
        st.text(max_size=30), st.sampled_from([".", "..", "/", "traces/", "a.yaml", "/dev/null", "\0.trace"]), values
    )
)
def test_from_any_raises_nothing_else(value: Any) -> None:
    with contextlib.suppress(CcgymError):
        NetworkPath.from_any(value).describe()


rates = st.integers(10**5, 10**9).map(format_rate)
steps_of_rates = st.lists(st.tuples(st.integers(1, 10**10), rates), max_size=4, unique_by=lambda step: step[0]).map(
    lambda steps: [("0s", "5mbps"), *((format_time(start), rate) for start, rate in sorted(steps))]
)


@given(
    rate=rates | steps_of_rates,
    rtt=st.integers(1, 10**9),
    queue=st.sampled_from(["1bdp", "0.3bdp", "40p", "30000B", "infinite", "codel", "fq_codel"]),
    loss=st.floats(0, 1),
)
def test_constructed_paths_round_trip_and_compile(rate: Any, rtt: int, queue: str, loss: float) -> None:
    path = NetworkPath(rate=rate, rtt=format_time(rtt), queue=queue, loss=loss)
    assert NetworkPath(**path.model_dump()) == path
    spec = json.loads(json.dumps(path.compile().as_dict()))
    assert spec["facts"]["base_rtt"] == path.base_rtt_ns == rtt
    assert spec["uplink"][-1]["delay"] + spec["downlink"][-1]["delay"] == rtt
    starts = [start for start, _ in spec["facts"]["capacity"]]
    assert starts == sorted(set(starts))
    assert starts[0] == 0
    limit = spec["uplink"][0]["queue"].get("limit", {})
    if queue == "1bdp":
        top = max(bps for _, bps in spec["facts"]["capacity"])
        assert limit["packets"] == max(1, -(-top * rtt // (12_000 * 10**9)))


# --- YAML -----------------------------------------------------------------------------------------------------------

plain_data = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**17), 10**17),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(string.printable + "äé→", max_size=12),
    ),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(string.ascii_letters, min_size=1), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(plain_data)
def test_json_is_yaml(data: Any) -> None:
    # Slashes and escapes of JSON's strings are YAML's too; only its control characters need escaping.
    assert parse_yaml(json.dumps(data), "x").data == data


@given(
    st.one_of(
        st.text(max_size=60),
        st.text(alphabet="abc: -[]{}#'\"\n\t&*!|>%@`?,.0123456789yesno~", max_size=60),
        st.binary(max_size=30).map(lambda raw: raw.decode("latin-1")),
    )
)
@example("a: " + "[" * 100_000)
@example("? " * 1000)
@example("- " * 1000)
@example("a: 1" + "0" * 5000)
@example("\ud800")
def test_yaml_raises_nothing_else(text: str) -> None:
    with contextlib.suppress(CcgymError):
        parse_yaml(text, "x")


class _Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")

    a: int = 0
    b: list[int] = []


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")

    a: int = 0
    b: _Inner = _Inner()
    c: list[_Inner] = []


@given(plain_data, st.lists(st.text(alphabet="abc.=012[]{}:, ", max_size=10), max_size=3))
def test_models_raise_nothing_else(data: Any, overrides: list[str]) -> None:
    loaded = Loaded({"a": 1, "b": {"a": data, "b": [data]}, "c": data}, {(): "x:1"}, "x")
    with contextlib.suppress(CcgymError):
        for override in overrides:
            apply_override(loaded, override, _Model)
        validate(loaded, _Model)


# --- Traces ---------------------------------------------------------------------------------------------------------

traces = (
    st.lists(st.integers(0, 5000), min_size=1, max_size=200)
    .filter(lambda lines: max(lines) > 0)
    .map(lambda lines: np.array(sorted(lines), dtype=np.uint64))
)


@given(traces)
def test_trace_files_round_trip(times: Any) -> None:
    assert parse_trace(trace_text(times), "x").times_ms.tolist() == times.tolist()


@given(st.one_of(st.binary(max_size=40), st.text(alphabet="0123456789 .-\n\r#,a", max_size=40).map(str.encode)))
def test_trace_parser_raises_nothing_else(content: bytes) -> None:
    with contextlib.suppress(CcgymError):
        parse_trace(content, "x")


@given(traces, st.integers(1, 700), st.integers(1, 20_000))
def test_rates_conserve_opportunities(times: Any, bin_ms: int, duration: int) -> None:
    edges, rates = binned_rates(times, bin_ms, duration)
    packets = float((rates * np.diff(edges)).sum()) / 12
    assert round(packets) == int(opportunities_before(times, duration))
    # Counting is playing: unroll the trace and count.
    period = int(times[-1])
    unrolled = [cycle * period + int(time) for cycle in range(duration // period + 1) for time in times]
    assert int(opportunities_before(times, duration)) == sum(time < duration for time in unrolled)


@given(traces, st.none() | st.integers(1, 3 * 10**10))
def test_capacity_steps_are_steps(times: Any, duration_ns: int | None) -> None:
    steps = capacity_steps(times, duration_ns)
    starts = [start for start, _ in steps]
    assert starts[0] == 0
    assert starts == sorted(set(starts))
    assert all(rate >= 0 for _, rate in steps)
    assert len(sparkline(times)) <= 72
    assert summarize(times).lines == len(times)


@given(traces, st.none() | st.integers(1, 10**9), st.none() | st.integers(0, 10**9), st.text(max_size=20))
def test_the_detector_never_fails(times: Any, rate: int | None, rtt: int | None, name: str) -> None:
    for finding in find_mistakes(times, rate, rtt, name=name):
        assert finding.message
        assert finding.cause
        assert finding.remedy


@given(st.integers(2, 100_000), st.sampled_from([1448, 1460, 1500, 1504]))
def test_packet_sizes_are_recognized_whatever_their_number(lines: int, size: int) -> None:
    (finding,) = check_trace(np.full(lines, size, dtype=np.uint64))
    assert finding.severity == "error"
    low = 8 * size * lines
    assert low <= likely_rate(lines, size) < low + 8 * size


@given(
    st.sampled_from(FORMATS),
    st.text(alphabet="0123456789 .,-\neE#a", max_size=60),
    st.sampled_from(["auto", "s", "ms"]),
)
def test_converters_raise_nothing_else(form: str, text: str, unit: str) -> None:
    with contextlib.suppress(CcgymError):
        times = convert(text, form, time_unit=unit)
        assert times[-1] > 0
        assert (np.diff(times.astype(np.int64)) >= 0).all()


@given(st.integers(10**5, 10**8), st.integers(10**8, 10**10), st.integers(0, 2**64))
def test_generated_traces_are_traces(rate: int, duration: int, seed: int) -> None:
    makers = (
        lambda: generate.constant(rate, duration),
        lambda: generate.poisson(rate, duration, seed=seed),
        lambda: generate.cellular(rate, duration, seed=seed),
        lambda: generate.stepped([(0, rate), (duration // 2, 2 * rate)], duration),
    )
    for make in makers:
        with contextlib.suppress(CcgymError):
            times = make()
            assert parse_trace(trace_text(times), "x").times_ms.tolist() == times.tolist()
