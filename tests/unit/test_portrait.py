"""The portrait of a scheme: what the figure says, what it is made of, how it is written, what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from ccgym.cli.main import main as cli
from ccgym.cli.plot import DEFAULT_PATHS
from ccgym.config.path import NetworkPath
from ccgym.errors import PlatformError
from ccgym.evaluation.capacity import RateCapacity
from ccgym.evaluation.metrics import PacketLog
from ccgym.evaluation.simulate import simulate
from ccgym.report.figures.portrait import (
    MAX_BINS,
    OTHER_COLOR,
    Column,
    behavior,
    bin_edges,
    facts,
    line_color,
    number_texts,
    portrait_figure,
)
from ccgym.report.style import flow_color, house_style, save
from ccgym.schemes.reading import parse_scheme
from tests.refusals import refused

STEADY = Path(__file__).parent / "data" / "policies" / "steady.onnx"
SHALLOW = NetworkPath(rate="12mbps", rtt="40ms", queue="10p", loss=0.01, name="shallow", title="A short queue: tested")
DEEP = NetworkPath(rate="2mbps", rtt="40ms", queue="200p", name="deep")


def column(path: NetworkPath, *schemes: str) -> Column:
    return Column(path, [simulate(path, [scheme], "4s", 1) for scheme in schemes])


def drawn(columns: list[Column], *schemes: str) -> Figure:
    with house_style():
        return portrait_figure([parse_scheme(scheme).style for scheme in schemes], columns)


def words(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(lambda part: isinstance(part, Text)) if isinstance(text, Text)]


def series(axes: Axes) -> dict[str, Line2D]:
    """The lines of the schemes by color; the empty path's has two points."""
    return {to_hex(line.get_color()): line for line in axes.lines if np.size(line.get_xdata()) > 2}


# --- What the figure says ------------------------------------------------------------------------------------------


def test_paths_schemes_and_their_numbers() -> None:
    columns = [column(SHALLOW, "bbr", "cubic"), column(DEEP, "bbr", "cubic")]
    said = words(drawn(columns, "bbr", "cubic"))
    for text in (
        "TCP BBR", "compared with TCP Cubic", "simulated, 4 s, seed 1", "shallow", "A short queue",
        "12 Mbit/s, random loss 1 %", "20 ms one way, queue 10 packets (0.25 BDP)", "deep",
        "2 Mbit/s, no random loss", "20 ms one way, queue 200 packets (30.0 BDP)",
    ):  # fmt: skip
        assert text in said, text
    for part in columns:
        for run in part.runs:
            flow = run.flows[0]
            assert flow.loss is not None
            assert number_texts(flow)[2] == f"{100 * flow.loss:.1f} %"
            assert all(text in said for text in number_texts(flow))


def test_the_scheme_has_its_color_and_the_other_is_gray_below_it() -> None:
    figure = drawn([column(SHALLOW, "copa", "cubic")], "copa", "cubic")
    for axes in figure.axes:
        lines = series(axes)
        assert set(lines) == {line_color("red"), OTHER_COLOR}
        assert lines[line_color("red")].get_zorder() > lines[OTHER_COLOR].get_zorder()
    # A figure of one scheme has one line.
    figure = drawn([column(SHALLOW, "bbr")], "bbr")
    assert not any(text.startswith("compared") for text in words(figure))
    assert [list(series(axes)) for axes in figure.axes] == [[line_color("darkgoldenrod")]] * 3


def test_rates_stay_below_the_capacity() -> None:
    """The capacity is drawn as the receiver sees it, a propagation delay later."""
    path = NetworkPath(rate=[("0s", "2mbps"), ("2s", "8mbps")], rtt="400ms", queue="30p", name="step")
    axes = drawn([column(path, "bbr")], "bbr").axes[0]
    rate = np.asarray(axes.lines[0].get_ydata())
    capacity = axes.patches[0].get_data().values  # type: ignore[attr-defined]
    assert rate.max() > 4
    assert (rate <= 1.001 * capacity + 12 / 1000 / (4 / rate.size)).all(), "but for one packet per bin"


def test_delays_far_apart_are_drawn_on_a_logarithmic_axis() -> None:
    figure = drawn([column(SHALLOW, "cubic"), column(DEEP, "cubic")], "cubic")
    assert [axes.get_yscale() for axes in figure.axes] == ["linear", "linear", "linear", "linear", "log", "linear"]


def test_the_window_is_drawn_and_what_is_in_flight_where_there_is_none() -> None:
    path = NetworkPath(rate="12mbps", rtt="40ms", queue="400p", name="fixed")
    for scheme, packets in (("fixed_window:cwnd=60", 60), ("fixed_rate:rate_mbps=6", 20)):
        axes = drawn([column(path, scheme)], scheme).axes[2]
        (line,) = series(axes).values()
        assert np.nanmedian(np.asarray(line.get_ydata())) == pytest.approx(packets, abs=2), scheme
        assert axes.get_ylim()[1] > 40, "the BDP is there"


def test_every_label_stays_on_the_page() -> None:
    long = NetworkPath(
        rate="12mbps", rtt="40ms", queue={"kind": "codel", "limit": "320p"}, name="a-path-with-a-very-long-name-" * 3,
        title="and a title that says " * 6,
    )  # fmt: skip
    scheme = "fixed_window:cwnd=100"
    figure = drawn([column(path, scheme, "cubic") for path in (long, SHALLOW, long)], scheme, "cubic")
    width, height = figure.get_size_inches() * figure.dpi
    figure.canvas.draw()
    for text in figure.texts:
        box = text.get_window_extent()
        assert min(box.x0, box.y0) >= 0, text.get_text()
        assert box.x1 <= width, text.get_text()
        assert box.y1 <= height, text.get_text()


def test_facts_of_unusual_paths() -> None:
    assert facts(NetworkPath(chain=[{"kind": "delay", "delay": "5ms"}])) == (
        "no bottleneck, no random loss",
        "5 ms one way, no queue",
    )
    burst = {"kind": "gilbert_elliott", "good_to_bad": "1%", "bad_to_good": "25%"}
    path = NetworkPath(rate="12mbps", rtt="40ms", queue={"kind": "codel", "limit": "320p"}, elements=[burst])
    assert facts(path) == ("12 Mbit/s, gilbert-elliott", "20 ms one way, CoDel 320p")


def test_the_default_paths_need_no_package() -> None:
    for name in DEFAULT_PATHS:
        assert NetworkPath.named(name).traces()


# --- What it is made of --------------------------------------------------------------------------------------------


def test_rate_and_percentiles_per_bin() -> None:
    delay_ms = np.arange(1, 102)  # 5th percentile 6, median 51, 95th 96
    times = np.linspace(0, 999_999_999, 101).astype(np.int64)
    ones = np.ones(101, dtype=np.int64)
    log = PacketLog(
        arrival_ns=times, arrival_bytes=1500 * ones, arrival_flow=ones, departure_ns=times,
        departure_bytes=1500 * ones, departure_flow=ones, delay_ns=delay_ms.astype(np.int64) * 1_000_000,
    )  # fmt: skip
    seen = behavior(log, np.array([0, 1_000_000_000, 2_000_000_000], dtype=np.int64))
    assert seen.rate_mbps.tolist() == pytest.approx([101 * 1500 * 8 / 1e6, 0.0])
    assert [seen.low_ms[0], seen.median_ms[0], seen.high_ms[0]] == pytest.approx([6, 51, 96])
    assert np.isnan([seen.low_ms[1], seen.median_ms[1], seen.high_ms[1]]).all()


def test_bins_are_as_fine_as_the_rate_allows() -> None:
    def bins(mbps: float) -> int:
        capacity = RateCapacity(np.array([0], dtype=np.int64), np.array([mbps * 1e6]))
        edges = bin_edges(30 * 10**9, capacity)
        assert (edges[0], edges[-1]) == (0, 30 * 10**9)
        return int(edges.size - 1)

    assert [bins(100), bins(0.48), bins(0.01)] == [MAX_BINS, 60, 10]


@pytest.mark.parametrize(
    ("given", "drawn"),
    [("silver", flow_color(0)), ("dimgray", flow_color(0)), ("black", "#000000"), ("red", "#ff0000"), ("gold", None),
     ("darkorange", None)],
)  # fmt: skip
def test_colors_are_dark_enough_and_never_the_gray(given: str, drawn: str | None) -> None:
    color = line_color(given)
    assert drawn in (None, color)
    red, green, blue = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    assert 0.3 * red + 0.59 * green + 0.11 * blue < 180
    assert color != OTHER_COLOR


# --- The command ---------------------------------------------------------------------------------------------------

RUN = ("--trace", "12mbps", "--runtime", "1")


@pytest.mark.parametrize(
    ("suffix", "magic"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF"), (".PNG", b"\x89PNG")]
)
def test_writes_every_format_the_same_each_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str, magic: bytes
) -> None:
    out = tmp_path / "folder" / f"portrait{suffix}"
    assert cli(["plot", "portrait", "cubic", *RUN, "-o", str(out)]) == 0
    said = capsys.readouterr().out
    for text in ("TCP Cubic", "TCP BBR", f"figure    {out}"):
        assert text in said
    first = out.read_bytes()
    assert first.startswith(magic)
    assert cli(["plot", "portrait", "cubic", *RUN, "-o", str(out)]) == 0
    assert out.read_bytes() == first
    assert os.listdir(out.parent) == [out.name]


@pytest.mark.parametrize(
    ("arguments", "there", "absent"),
    [
        (["bbr"], "TCP Cubic", "nothing"),
        (["cubic", "--compare", "none"], "TCP Cubic", "TCP BBR"),
        ([str(STEADY)], "TCP BBR", "TCP Cubic"),
    ],
)
def test_what_is_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], there: str, absent: str
) -> None:
    assert cli(["plot", "portrait", *arguments, *RUN, "-o", str(tmp_path / "a.png")]) == 0
    said = capsys.readouterr().out
    assert there in said
    assert absent not in said


def test_a_mahimahi_command_line_is_one_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = (
        "mm-delay 10 mm-link 12mbps.trace 12mbps.trace --uplink-queue=droptail "
        "--uplink-queue-args=packets=20,bytes=40000"
    )
    out = tmp_path / "a.png"
    assert cli(["plot", "portrait", "cubic", "--trace", command, "--runtime", "1", "-o", str(out)]) == 0
    assert capsys.readouterr().out.count("TCP Cubic") == 1


def test_a_file_is_whole_or_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns, styles = [column(SHALLOW, "cubic")], [parse_scheme("cubic").style]
    file = tmp_path / "portrait.png"
    file.write_bytes(b"old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with house_style(), refused(PlatformError, "file-unwritable at portrait.png"):
        save(portrait_figure(styles, columns), file)
    assert file.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["portrait.png"]
    monkeypatch.undo()
    with house_style():
        save(portrait_figure(styles, columns), file)
    assert file.read_bytes().startswith(b"\x89PNG")
