"""One table in four forms."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass

import pytest
from rich.console import Console

from ccgym.report.page import TEMPLATES, render
from ccgym.report.table import NOTHING, Cell, Column, Row, Table, number, spread


@dataclass(frozen=True)
class Mean:
    mean: float
    std: float | None


TABLE = Table(
    [
        Column("scheme", "scheme", align="left"),
        Column("rate", "throughput", "Mbit/s", spread(2), better="max", short="Mbit/s"),
        Column("loss", "random\nloss", "%", number(1, 100), better="min", short="loss %"),
        Column("published_rate", "throughput", "Mbit/s", number(2), group="published", under="rate"),
    ],
    [
        Row({"scheme": "A <b>", "rate": Mean(12.345, 0.5), "loss": 0.034, "published_rate": 11.0}),
        Row({"scheme": "B", "rate": Cell(Mean(3.0, None), "best"), "loss": Cell(0.5, "bad")}, first=True),
    ],
    legend="Mbit/s: throughput",
)


def printed(width: int) -> list[str]:
    console = Console(width=width, file=io.StringIO())
    console.print(TABLE)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_texts_and_headings() -> None:
    assert [column.heading for column in TABLE.columns] == [
        "scheme",
        "throughput (Mbit/s)",
        "random loss (%)",
        "published throughput (Mbit/s)",
    ]
    assert [TABLE.texts(row) for row in TABLE.rows] == [
        ["A <b>", "12.35 ± 0.50", "3.4", "11.00"],
        ["B", "3.00", "50.0", NOTHING],
    ]


def test_markdown() -> None:
    assert TABLE.markdown().splitlines()[1:] == [
        "|---|---:|---:|---:|",
        "| A &lt;b> | 12.35 ± 0.50 | 3.4 | 11.00 |",
        f"| B | **3.00** | **50.0** | {NOTHING} |",
    ]


def test_csv_has_exact_values() -> None:
    table = Table([Column("a", "A"), Column("b", "B")], [Row({"a": 1 / 3, "b": None}), Row({"a": 'x,"', "b": True})])
    assert table.csv() == 'a,b\n0.3333333333333333,\n"x,""",True\n'


def test_narrow_screens_show_the_same_numbers() -> None:
    wide, stacked, short, listed = printed(100), printed(40), printed(30), printed(20)
    assert any("12.35 ± 0.50" in line and "11.00" in line for line in wide)
    assert any("published" in line and "11.00" in line for line in stacked)
    assert "Mbit/s: throughput" in "\n".join(short)
    assert any(line.strip() == "± 0.50" for line in short)
    assert "A <b>" in listed
    for shown in (wide, stacked, short, listed):
        assert {"12.35", "0.50", "3.4", "11.00", "3.00", "50.0"} <= set(re.findall(r"[\d.]+", "\n".join(shown)))


@pytest.mark.parametrize(("value", "text"), [(-0.001, "0.00"), (-1.5, "−1.50"), (0.02, "0.02"), (0.0, "0.00")])
def test_numbers_have_a_real_minus(value: float, text: str) -> None:
    assert number(2)(value) == text


def test_pages_sort_by_the_numbers(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "page.html.j2").write_text('{% from "parts.html.j2" import show %}{{ show(table) }}')
    (tmp_path / "parts.html.j2").write_bytes((TEMPLATES / "parts.html.j2").read_bytes())
    monkeypatch.setattr("ccgym.report.page.TEMPLATES", tmp_path)
    page = render("page", table=TABLE)
    assert re.findall(r'data-better="(\w+)"', page) == ["max", "min"]
    assert re.findall(r'data-key="([\d.]+)"', page) == ["12.345", "0.034", "11.0", "3.0", "0.5"]
    assert "A &lt;b&gt;" in page
    assert re.search(r'<td class="right best[^"]*"\s+data-label="throughput \(Mbit/s\)"', page)
