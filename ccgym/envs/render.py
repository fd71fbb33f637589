"""Pictures of an episode: rate, delay, queue and action over time, as text or as an image.

Environments use matplotlib only in this module, and only for images.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from ccgym.errors import ConfigError, PlatformError, did_you_mean, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RENDER_MODES: Final = ("ansi", "rgb_array")
RENDER_FPS: Final = 10

WIDTH_PX, HEIGHT_PX, DPI = 800, 720, 100
"""Width and height of the image in pixels, and its resolution."""
SPARK_STEPS: Final = 60
"""Max number of steps in a line of text."""
_SPARKS: Final = "▁▂▃▄▅▆▇█"
_BLUE, _ORANGE, _GREEN, _GREY, _RED = "#0072B2", "#D55E00", "#009E73", "#666666", "#CC79A7"


def check_render_mode(mode: str | None) -> None:
    """Raise :class:`ConfigError` if ``mode`` is not a render mode."""
    if mode is not None and mode not in RENDER_MODES:
        raise ConfigError(
            "unknown-choice",
            f"render_mode {shown(mode)}",
            where="render_mode",
            expected=", ".join(RENDER_MODES),
            hint=did_you_mean(str(mode), RENDER_MODES),
        )


class History:
    """The data for the picture of an episode: a few numbers per step.

    Args:
        actions: Names, with units, of the rows of the agent's action.
        discrete: Whether an action is the index of one row.
    """

    def __init__(self, actions: Sequence[str], *, discrete: bool) -> None:
        self._names = list(actions)
        self._discrete = discrete
        self.clear()

    def clear(self) -> None:
        """Remove all steps."""
        self.series: defaultdict[str, list[float]] = defaultdict(list)
        self.action: list[list[float]] = []
        self.total_reward = 0.0

    def add(
        self,
        interval: Mapping[str, float],
        privileged: Mapping[str, float],
        action: npt.NDArray[np.float32],
        reward: float,
    ) -> None:
        """Add a step."""
        values = {
            "time": interval["time_s"],
            "sent": interval["send_rate_bps"] / 1e6,
            "delivered": interval["delivery_rate_bps"] / 1e6,
            "capacity": privileged["link_rate_bps"] / 1e6,
            "rtt": interval["mean_rtt_s"] * 1e3 or math.nan,  # zero: no packet was acknowledged
            "base_rtt": privileged["base_rtt_s"] * 1e3,
            "queue": privileged["backlog_packets"],
            "queue_limit": privileged["queue_limit_packets"],
            "lost": 100 * interval["loss_fraction"],
        }
        for name, value in values.items():
            self.series[name].append(value)
        self.action.append(action.tolist())
        self.total_reward += reward

    def render(self, mode: str) -> str | npt.NDArray[np.uint8]:
        """Return the picture: text for ``ansi``, bytes (height, width, 3) for ``rgb_array``."""
        return self._text() if mode == "ansi" else self._image()

    # --- Text ---------------------------------------------------------------------------------------------------------

    def _text(self) -> str:
        series = self.series
        if not series["time"]:
            return "no step yet\n"
        latest = {name: values[-1] for name, values in series.items()}
        rows = [
            ("rate", "Mbit/s", series["delivered"], f"of {latest['capacity']:.4g}"),
            ("RTT", "ms", series["rtt"], f"base {latest['base_rtt']:.4g}"),
            ("queue", "packets", series["queue"], f"of {latest['queue_limit']:.4g}"),
            ("loss", "%", series["lost"], ""),
        ]
        rows += [(name, "", values, "") for name, values in self._action_series()]
        lines = [f"t = {latest['time']:.3f} s, step {len(series['time'])}, reward {self.total_reward:.4g}"]
        lines += [
            f"{name[:12]:<12} {_sparks(values)} {_number(values[-1])} {unit} {note}".rstrip()
            for name, unit, values, note in rows
        ]
        return "\n".join(lines) + "\n"

    def _action_series(self) -> list[tuple[str, list[float]]]:
        if self._discrete:
            return [("action", [values[0] for values in self.action])]
        names = self._names if len(self._names) > 1 else ["action"]
        return [(name, [values[i] for values in self.action]) for i, name in enumerate(names[: len(self.action[0])])]

    # --- Image --------------------------------------------------------------------------------------------------------

    def _image(self) -> npt.NDArray[np.uint8]:
        try:
            from matplotlib.backends.backend_agg import FigureCanvasAgg
            from matplotlib.figure import Figure
        except ImportError:
            raise PlatformError(
                "package-missing",
                "matplotlib is not installed",
                where="render_mode='rgb_array'",
                expected="the extra `report`",
                hint="pip install 'ccgym[report]', or use render_mode='ansi'",
            ) from None
        figure = Figure(figsize=(WIDTH_PX / DPI, HEIGHT_PX / DPI), dpi=DPI, layout="constrained")
        canvas = FigureCanvasAgg(figure)
        self._draw(figure)
        canvas.draw()  # type: ignore[no-untyped-call, unused-ignore]
        pixels = np.array(canvas.buffer_rgba(), dtype=np.uint8)  # type: ignore[no-untyped-call, unused-ignore]
        return np.ascontiguousarray(pixels[..., :3])

    def _draw(self, figure: Figure) -> None:
        series, time = self.series, self.series["time"]
        rate, delay, queue, action = figure.subplots(4, 1, sharex=True)
        rate.plot(time, series["capacity"], color=_GREY, linestyle="--", label="capacity")
        rate.plot(time, series["sent"], color=_ORANGE, label="sent")
        rate.plot(time, series["delivered"], color=_BLUE, label="delivered")
        _finish(rate, "rate\nMbit/s")
        delay.plot(time, series["base_rtt"], color=_GREY, linestyle="--", label="propagation")
        delay.plot(time, series["rtt"], color=_BLUE, label="mean RTT")
        _finish(delay, "RTT\nms")
        queue.plot(time, series["queue"], color=_GREEN, label="queue")
        limit = series["queue_limit"][-1] if time else math.inf
        if math.isfinite(limit) and max(series["queue"]) > 0.3 * limit:
            queue.plot(time, series["queue_limit"], color=_GREY, linestyle="--", label="limit")
        if any(series["lost"]):
            right = queue.twinx()
            right.plot(time, series["lost"], color=_RED, linewidth=0.8)
            right.set_ylim(bottom=0)
            right.set_ylabel("loss, %", color=_RED)
        _finish(queue, "queue\npackets")
        for place, (name, values) in enumerate(self._action_series() if self.action else []):
            action.step(time, values, where="pre", color=(_ORANGE, _BLUE, _GREEN, _RED)[place % 4], label=name)
        _finish(action, "action", floor=False)
        if self._discrete:
            action.set_yticks(range(len(self._names)), self._names)
        action.set_xlabel("time, s")
        if time:
            figure.suptitle(f"{time[-1]:.2f} s, step {len(time)}, total reward {self.total_reward:.4g}")


def _finish(axes: Axes, label: str, *, floor: bool = True) -> None:
    axes.set_ylabel(label)
    axes.grid(visible=True, alpha=0.3)
    axes.margins(y=0.12)
    if floor:
        axes.set_ylim(bottom=0)
    if len(axes.lines) > 1:
        axes.legend(loc="lower left", bbox_to_anchor=(0.0, 0.98), fontsize="small", ncols=3, frameon=False)


def _number(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "–"


def _sparks(values: Sequence[float]) -> str:
    """Return the latest values as a line of bars, scaled from the smallest to the largest value."""
    recent = values[-SPARK_STEPS:]
    known = [value for value in recent if math.isfinite(value)]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    span = (high - low) or 1.0
    bars = [
        _SPARKS[min(len(_SPARKS) - 1, int((value - low) / span * len(_SPARKS)))] if math.isfinite(value) else " "
        for value in recent
    ]
    return "".join(bars).rjust(SPARK_STEPS)
