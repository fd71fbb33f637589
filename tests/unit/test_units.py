"""Quantities with units: what they mean, and what is refused with which hint."""

from __future__ import annotations

import numpy as np
import pytest

from ccgym.errors import UnitError
from ccgym.units import (
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
from tests.refusals import refused


@pytest.mark.parametrize(
    ("text", "bps"),
    [
        ("77.72mbps", 77_720_000),
        ("32 Mbit/s", 32_000_000),
        ("1gbps", 10**9),
        ("1Gbps", 10**9),
        ("100kbps", 100_000),
        ("0.57Mbps", 570_000),
        ("1e3kbps", 10**6),
        (".5mbps", 500_000),
        ("9600bps", 9600),
        ("12 mbit", 12_000_000),
        (" 5 MBPS ", 5_000_000),
        ("0.1gbps", 100_000_000),
    ],
)
def test_rates(text: str, bps: int) -> None:
    assert parse_rate(text) == bps


@pytest.mark.parametrize(
    ("value", "part"),
    [
        (50, "unit-missing"),
        (np.int64(50), "unit-missing"),
        (50.0, "unit-missing"),
        ("50", "unit-missing"),
        (None, "unit-missing"),
        (True, "unit-missing"),
        ("mbps", "quantity-malformed"),
        ("", "quantity-malformed"),
        ("-5mbps", "out-of-range"),
        ("0mbps", "out-of-range"),
        ("1e20gbps", "out-of-range"),
        ("5mpbs", "unknown-unit"),
        ("5mbits", "unknown-unit"),
        ("50MBps", "unit-ambiguous"),
        ("1.5MB/s", "unit-ambiguous"),
        ("50MiB/s", "unit-ambiguous"),
        ("1,5mbps", "quantity-malformed"),
        ("1_000mbps", "quantity-malformed"),
        ("nanmbps", "quantity-malformed"),
        ("infmbps", "quantity-malformed"),
        ("５mbps", "quantity-malformed"),
    ],
)
def test_no_rates(value: object, part: str) -> None:
    with refused(UnitError, part):
        parse_rate(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("51ms", 51_000_000),
        ("0.5s", 500_000_000),
        ("200us", 200_000),
        ("200µs", 200_000),
        ("3.75 s", 3_750_000_000),
        ("1ns", 1),
        ("2min", 120 * 10**9),
        ("0", 0),
        (0, 0),
        ("0ms", 0),
        ("51MS", 51_000_000),
        (30, 30 * 10**9),
        ("30", 30 * 10**9),
        (0.1, 100_000_000),
        (1e-9, 1),
        (np.float64(0.1), 100_000_000),
        (np.float32(0.1), 100_000_000),
        (np.int64(2), 2 * 10**9),
        (Nanoseconds(30), 30),
    ],
)
def test_times(text: str | float, ns: int) -> None:
    assert parse_time(text) == ns
    assert type(parse_time(text)) is int


@pytest.mark.parametrize(
    ("value", "part"),
    [
        (True, "quantity-malformed"),
        (np.bool_(True), "quantity-malformed"),
        (float("nan"), "quantity-malformed"),
        (float("inf"), "quantity-malformed"),
        (-5, "out-of-range"),
        ("-5", "out-of-range"),
        pytest.param(10**5000, "out-of-range", id="huge"),
        (1e300, "out-of-range"),
        (Nanoseconds(-1), "out-of-range"),
        (None, "quantity-malformed"),
        ("-1ms", "out-of-range"),
        ("5 seconds", "unknown-unit"),
        ("5m", "unknown-unit"),
        ("5mss", "unknown-unit"),
        ("1e300s", "out-of-range"),
        ([], "quantity-malformed"),
    ],
)
def test_no_times(value: object, part: str) -> None:
    with refused(UnitError, part):
        parse_time(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("94p", Size(packets=94)),
        ("1 packet", Size(packets=1)),
        ("30000B", Size(bytes=30_000)),
        ("64kB", Size(bytes=64_000)),
        ("64KiB", Size(bytes=65_536)),
        ("1.5bdp", Size(bdp=1.5)),
        ("1BDP", Size(bdp=1.0)),
    ],
)
def test_sizes(text: str, size: Size) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("value", "part"),
    [
        (94, "unit-missing"),
        ("94", "unit-missing"),
        ("0p", "out-of-range"),
        ("1.5p", "quantity-malformed"),
        ("64kb", "unknown-unit"),
        ("5pkg", "unknown-unit"),
        ("-1bdp", "out-of-range"),
        ("1e9bdp", "out-of-range"),
    ],
)
def test_no_sizes(value: object, part: str) -> None:
    with refused(UnitError, part):
        parse_size(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "probability"), [("1%", 0.01), (0.01, 0.01), ("0.0006", 0.0006), (1.0, 1.0), ("100%", 1.0), (0, 0.0)]
)
def test_probabilities(value: str | float, probability: float) -> None:
    assert parse_probability(value) == probability


@pytest.mark.parametrize(
    ("value", "part"),
    [
        (5, "out-of-range"),
        (1, "unit-ambiguous"),
        ("1", "unit-ambiguous"),
        (np.int64(1), "unit-ambiguous"),
        (True, "out-of-range"),
        ("5", "out-of-range"),
        (-0.1, "out-of-range"),
        (float("nan"), "out-of-range"),
        ("101%", "out-of-range"),
        ("1 percent", "unknown-unit"),
        (None, "out-of-range"),
    ],
)
def test_no_probabilities(value: object, part: str) -> None:
    with refused(UnitError, part):
        parse_probability(value)  # type: ignore[arg-type]


def test_formats() -> None:
    assert format_rate(77_720_000) == "77.72mbps"
    assert format_rate(10**9) == "1gbps"
    assert format_rate(1_234_567_890) == "1234.56789mbps"
    assert format_rate(999) == "999bps"
    assert format_time(51_000_000) == "51ms"
    assert format_time(1_500_000_000) == "1.5s"
    assert format_time(0) == "0s"
    assert format_time(7_500_000) == "7.5ms"
    assert format_size(Size(packets=94)) == "94p"
    assert format_size(Size(bdp=1.5)) == "1.5bdp"
    assert format_probability(0.0006) == "0.06%"
