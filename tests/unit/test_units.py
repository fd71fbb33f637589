"""Quantities with units: what they mean, and what is refused with which hint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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

MEANINGS: list[tuple[Callable[[Any], Any], Any, list[Any]]] = [
    (parse_rate, 77_720_000, ["77.72mbps"]),
    (parse_rate, 32_000_000, ["32 Mbit/s"]),
    (parse_rate, 1_000_000_000, ["1gbps", "1Gbps"]),
    (parse_rate, 100_000, ["100kbps"]),
    (parse_rate, 570_000, ["0.57Mbps"]),
    (parse_rate, 1_000_000, ["1e3kbps"]),
    (parse_rate, 500_000, [".5mbps"]),
    (parse_rate, 9600, ["9600bps"]),
    (parse_rate, 12_000_000, ["12 mbit"]),
    (parse_rate, 5_000_000, [" 5 MBPS "]),
    (parse_rate, 100_000_000, ["0.1gbps"]),
    (parse_time, 51_000_000, ["51ms", "51MS"]),
    (parse_time, 500_000_000, ["0.5s"]),
    (parse_time, 200_000, ["200us", "200µs"]),
    (parse_time, 3_750_000_000, ["3.75 s"]),
    (parse_time, 1, ["1ns", 1e-09]),
    (parse_time, 120_000_000_000, ["2min"]),
    (parse_time, 0, ["0", 0, "0ms"]),
    (parse_time, 30_000_000_000, [30, "30"]),
    (parse_time, 100_000_000, [0.1, np.float64(0.1), np.float32(0.1)]),
    (parse_time, 2_000_000_000, [np.int64(2)]),
    (parse_time, 30, [Nanoseconds(30)]),
    (parse_size, Size(packets=94), ["94p"]),
    (parse_size, Size(packets=1), ["1 packet"]),
    (parse_size, Size(bytes=30000), ["30000B"]),
    (parse_size, Size(bytes=64000), ["64kB"]),
    (parse_size, Size(bytes=65536), ["64KiB"]),
    (parse_size, Size(bdp=1.5), ["1.5bdp"]),
    (parse_size, Size(bdp=1.0), ["1BDP"]),
    (parse_probability, 0.01, ["1%", 0.01]),
    (parse_probability, 0.0006, ["0.0006"]),
    (parse_probability, 1.0, [1.0, "100%"]),
    (parse_probability, 0.0, [0]),
]

REFUSED: list[tuple[Callable[[Any], Any], str, list[Any]]] = [
    (parse_rate, "unit-missing", [50, np.int64(50), 50.0, "50", None, True]),
    (parse_rate, "quantity-malformed", ["mbps", "", "1,5mbps", "1_000mbps", "nanmbps", "infmbps", "５mbps"]),
    (parse_rate, "out-of-range", ["-5mbps", "0mbps", "1e20gbps"]),
    (parse_rate, "unknown-unit", ["5mpbs", "5mbits"]),
    (parse_rate, "unit-ambiguous", ["50MBps", "1.5MB/s", "50MiB/s"]),
    (parse_time, "quantity-malformed", [True, np.bool_(1), float("nan"), float("inf"), None, []]),
    (parse_time, "out-of-range", [-5, "-5", 10**5000, 1e300, Nanoseconds(-1), "-1ms", "1e300s"]),
    (parse_time, "unknown-unit", ["5 seconds", "5m", "5mss"]),
    (parse_size, "unit-missing", [94, "94"]),
    (parse_size, "out-of-range", ["0p", "-1bdp", "1e9bdp"]),
    (parse_size, "quantity-malformed", ["1.5p"]),
    (parse_size, "unknown-unit", ["64kb", "5pkg"]),
    (parse_probability, "out-of-range", [5, True, "5", -0.1, float("nan"), "101%", None]),
    (parse_probability, "unit-ambiguous", [1, "1", np.int64(1)]),
    (parse_probability, "unknown-unit", ["1 percent"]),
]


@pytest.mark.parametrize(("parse", "meaning", "texts"), MEANINGS)
def test_meanings(parse: Callable[[Any], Any], meaning: Any, texts: list[Any]) -> None:
    assert [parse(text) for text in texts] == [meaning] * len(texts)
    assert {type(parse(text)) for text in texts} == {type(meaning)}


@pytest.mark.parametrize(("parse", "code", "values"), REFUSED)
def test_refusals(parse: Callable[[Any], Any], code: str, values: list[Any]) -> None:
    for value in values:
        with refused(UnitError, code):
            parse(value)


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
