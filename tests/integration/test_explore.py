"""``explore.html`` in a real browser: quiet, quick, linked, by keyboard, light and dark, on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ccgym.report.explore import write_explore
from tests.browser import Browser, program
from tests.unit.made_up_results import many, store

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(program() is None, reason="needs chromium: sudo apt-get install chromium"),
]

SCHEMES, RUNS = 12, 10

EVERYTHING = """(async () => {
  for (const box of document.querySelectorAll("details")) box.open = true;
  for (let y = 0; y < document.documentElement.scrollHeight; y += 400) {
    scrollTo(0, y);
    await new Promise((done) => setTimeout(done, 30));
  }
})()"""
"""Opens and passes everything on the page."""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of 120 runs."""
    directory = tmp_path_factory.mktemp("results")
    write_explore(store(directory, many(SCHEMES, RUNS)), directory)
    return directory / "explore.html"


@pytest.fixture(scope="module")
def process() -> Iterator[Browser]:
    with Browser() as started:
        yield started


@pytest.fixture
def browser(process: Browser, page: Path) -> Iterator[Browser]:
    """A browser in which the page asks for itself only, and has nothing to say."""
    process.requests.clear()
    process.said.clear()
    yield process
    assert process.said == []
    assert set(process.requests) == {page.as_uri()}


def ranges(browser: Browser, scale: str) -> list[tuple[float, float]]:
    """What the charts over time show of a scale."""
    found = browser.run(f"explore.charts().map(({{ scales: {{ {scale} }} }}) => [{scale}.min, {scale}.max])")
    return [(round(low, 6), round(high, 6)) for low, high in found]


def place(browser: Browser, element: str) -> tuple[float, float, float, float]:
    """Left, top, width and height of an element, which is in view then."""
    found = browser.run(
        f"(() => {{ const one = {element}; one.scrollIntoView({{ block: 'center' }}); "
        "const { left, top, width, height } = one.getBoundingClientRect(); return [left, top, width, height]; })()"
    )
    left, top, width, height = found
    return left, top, width, height


def drag(browser: Browser, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Draw with the mouse."""
    browser.tell("Input.dispatchMouseEvent", type="mouseMoved", x=start[0], y=start[1])
    for kind, (x, y) in (("Pressed", start), ("Moved", end), ("Released", end)):
        browser.tell("Input.dispatchMouseEvent", type=f"mouse{kind}", x=x, y=y, button="left", clickCount=1)


def state(browser: Browser) -> dict[str, Any]:
    return dict(browser.run("({ a: explore.state.a?.name, b: explore.state.b?.name })"))


@pytest.mark.parametrize("dark", [False, True])
def test_everything_is_drawn_of_what_is_in_the_file(browser: Browser, page: Path, dark: bool) -> None:
    browser.open(page, dark=dark)
    browser.run(EVERYTHING)
    assert browser.run("document.querySelectorAll('#plane-figure .mark').length") == SCHEMES * RUNS + SCHEMES
    assert browser.run("document.querySelectorAll('#plane-figure .ellipse').length") == SCHEMES
    assert browser.run("explore.charts().length") == 7, "throughput, delay, queue, drops, loss, window, round-trip time"
    assert browser.run("document.querySelectorAll('#cdf .u-series').length") == 1 + SCHEMES
    commands = browser.run("[...document.querySelectorAll('.command pre')].map((one) => one.textContent)")
    assert len(commands) == 3 + 7
    assert all(text.startswith("python evaluate.py --trace 77.72mbps") for text in commands)
    assert browser.run("getComputedStyle(document.body).backgroundColor") == (
        "rgb(24, 24, 24)" if dark else "rgb(255, 255, 255)"
    )


def test_the_first_paint_costs_little(browser: Browser, page: Path) -> None:
    browser.tell("Performance.enable", timeDomain="threadTicks")
    browser.open(page)
    spent = {one["name"]: one["value"] for one in browser.tell("Performance.getMetrics")["metrics"]}
    assert browser.run("performance.getEntriesByName('first-contentful-paint').length") == 1
    assert spent["TaskDuration"] < 2, "seconds of processor time, whatever else the machine does"
    assert page.stat().st_size < 4e6


@pytest.mark.parametrize("dark", [False, True])
def test_a_phone_shows_it_without_scrolling_sideways(browser: Browser, page: Path, dark: bool) -> None:
    browser.open(page, 375, 700, dark=dark, part="#a=s1_run2&b=s3")
    browser.run(EVERYTHING)
    assert browser.run("[innerWidth, document.documentElement.scrollWidth]") == [375, 375]
    assert browser.run("explore.charts().length") == 14
    assert browser.run("Math.max(...explore.charts().map((one) => one.width))") <= 375


def test_tables_sort_by_key_and_rows_open(browser: Browser, page: Path) -> None:
    browser.open(page)
    first = "document.querySelector('table.sortable tbody tr').cells[0].textContent"
    head = "document.querySelector('table.sortable th:nth-child({})')"
    assert browser.run(first) == "Scheme 0"
    browser.run(head.format(3) + ".focus()")
    browser.press("Enter")
    assert browser.run(first) == "Scheme 11", "the largest throughput first"
    browser.press("Enter")
    assert browser.run(first) == "Scheme 0"
    browser.run(head.format(1) + ".focus()")
    for _ in range(2):
        browser.press("Enter")
    assert browser.run(first) == "Scheme 11", "by name, and numbers in names count as numbers"
    assert browser.run(head.format(1) + ".ariaSort") == "descending"
    browser.run("document.querySelector('table.sortable tbody tr').focus()")
    browser.press("ArrowDown")
    browser.press("Enter")
    assert state(browser) == {"a": "s10"}
    browser.press("ArrowDown")
    browser.press("b")
    assert state(browser) == {"a": "s10", "b": "s9"}


def test_keys_go_from_run_to_run_and_put_two_side_by_side(browser: Browser, page: Path) -> None:
    browser.open(page, part="#a=s1_run10")
    for key, a, b in [
        ("j", "s2_run1", None),
        ("k", "s1_run10", None),
        ("J", "s2_run10", None),
        ("c", "s2_run10", "s3_run10"),
        ("c", "s2_run10", "s4_run10"),
        ("s", "s4_run10", "s2_run10"),
        ("Escape", "s4_run10", None),
    ]:
        browser.press(key)
        assert state(browser) == {"a": a, **({} if b is None else {"b": b})}, key
    assert browser.run("location.hash") == "#a=s4_run10"
    browser.press("?")
    assert browser.run("document.getElementById('help').open")
    browser.press("j")
    assert state(browser)["a"] == "s4_run10", "the help is in front"


def test_time_axes_are_linked(browser: Browser, page: Path) -> None:
    browser.open(page, part="#a=s1_run1&b=s2")
    browser.run(EVERYTHING)
    assert set(ranges(browser, "x")) == {(0, 30)}
    browser.press("+")
    assert set(ranges(browser, "x")) == {(7.5, 22.5)}
    browser.press("ArrowRight")
    assert set(ranges(browser, "x")) == {(11.25, 26.25)}
    assert browser.run("location.hash") == "#a=s1_run1&b=s2&x=11.25-26.25"
    browser.press("0")
    # A drag in one chart, from a quarter to half of it.
    left, top, width, height = place(browser, "explore.charts()[3].over")
    drag(browser, (left + width / 4, top + height / 2), (left + width / 2, top + height / 2))
    browser.run("new Promise((done) => setTimeout(done, 100))")
    (found,) = set(ranges(browser, "x"))
    assert found == pytest.approx((7.5, 15), abs=0.2)


def fingers(browser: Browser, kind: str, y: float, *xs: float) -> None:
    """Fingers touch the screen, move or leave it; they are where they are after that."""
    points = [{"x": x, "y": y, "id": place} for place, x in enumerate(xs)]
    browser.tell("Input.dispatchTouchEvent", type=kind, touchPoints=points)
    browser.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 30)))")


def test_two_fingers_stretch_the_time_axis_and_one_moves_it(browser: Browser, page: Path) -> None:
    browser.tell("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=2)
    try:
        browser.open(page, 375, 700, part="#a=s1_run1")
        browser.run(EVERYTHING)
        left, top, width, height = place(browser, "explore.charts()[1].over")
        y = top + height / 2
        # Two fingers on 10 and 20 s, moved to the thirds of the axis: what they hold stays below them.
        fingers(browser, "touchStart", y, left + width / 3, left + 2 * width / 3)
        for part in (0.05, 0.1, 0.15):
            fingers(browser, "touchMove", y, left + (1 / 3 - part) * width, left + (2 / 3 + part) * width)
        fingers(browser, "touchEnd", y)
        (stretched,) = set(ranges(browser, "x"))
        middle, half = 15, 15 * (1 / 3) / (1 / 3 + 0.3)
        assert stretched == pytest.approx((middle - half, middle + half), abs=0.3)
        assert browser.run("visualViewport.scale") == 1, "the page stays as large as it is"
        # One finger takes it along.
        fingers(browser, "touchStart", y, left + width / 2)
        for part in (0.6, 0.7, 0.75):
            fingers(browser, "touchMove", y, left + part * width)
        fingers(browser, "touchEnd", y)
        (moved,) = set(ranges(browser, "x"))
        assert moved[1] - moved[0] == pytest.approx(2 * half, abs=1e-3)
        assert moved[0] == pytest.approx(stretched[0] - 0.25 * 2 * half, abs=0.3)
        # Together again: all of it, and no more.
        fingers(browser, "touchStart", y, left + 0.1 * width, left + 0.9 * width)
        for part in (0.3, 0.4, 0.45):
            fingers(browser, "touchMove", y, left + part * width, left + (1 - part) * width)
        fingers(browser, "touchEnd", y)
        assert set(ranges(browser, "x")) == {(0, 30)}
    finally:
        browser.tell("Emulation.setTouchEmulationEnabled", enabled=False)


def test_charts_side_by_side_have_one_scale(browser: Browser, page: Path) -> None:
    browser.open(page, part="#a=s1_run1&b=s2")
    browser.run(EVERYTHING)
    found = ranges(browser, "y")
    assert len(found) == 14
    assert found[::2] == found[1::2]
    numbers = browser.run(
        "[...document.querySelectorAll('#numbers tbody tr:first-child td')].map((one) => one.textContent)"
    )
    assert numbers == ["throughput (Mbit/s)", "25.00", "33.50 ± 3.03", "+8.50"]


def test_a_click_on_a_mark_opens_it_and_names_hide(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.run("document.querySelector('[data-entity=s5_run3]').dispatchEvent(new MouseEvent('click'))")
    assert state(browser) == {"a": "s5_run3"}
    browser.run("document.querySelector('#legend button').click()")
    assert browser.run("document.querySelectorAll('#plane-figure .ellipse').length") == SCHEMES - 1


def test_the_plane_zooms_into_a_rectangle(browser: Browser, page: Path) -> None:
    browser.open(page)
    left, top, _, _ = place(browser, "document.querySelector('#plane-figure svg')")
    drag(browser, (left + 60, top + 20), (left + 260, top + 120))
    view = browser.run("explore.state.view")
    assert 55 < view["x0"] < view["x1"] < 100
    assert 0 < view["y0"] < view["y1"] < 90
    browser.run("document.getElementById('plane-reset').click()")
    assert browser.run("explore.state.view") is None


def test_the_theme_is_the_system_s_until_it_is_chosen(browser: Browser, page: Path) -> None:
    browser.open(page, dark=True)
    assert browser.run("document.documentElement.dataset.theme") == "dark"
    browser.press("t")
    assert browser.run("document.documentElement.dataset.theme") == "light"
    browser.open(page, dark=True)
    assert browser.run("document.documentElement.dataset.theme") == "light", "and kept"
    browser.run("localStorage.clear()")
