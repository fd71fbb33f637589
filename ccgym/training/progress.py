"""Output during training: a live line on a terminal, and a line per evaluation everywhere. Stop requests: the first
signal stops the training after the current update, the second one immediately."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from ccgym.training.evaluation import ORACLE, Baselines, EvaluationResult

if TYPE_CHECKING:
    from rich.console import Console


class ProgressDisplay:
    """Shows progress on a console. Use it as a context manager.

    Args:
        console: The console; a progress bar appears only on a terminal.
        steps: Total number of steps.
    """

    def __init__(self, console: Console, steps: int) -> None:
        self.console = console
        self._steps = steps
        self._best: float | None = None
        self._baselines: Baselines | None = None
        self._began = time.perf_counter()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            TextColumn("{task.fields[note]}", style="dim"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("training", total=steps, note="")

    def __enter__(self) -> ProgressDisplay:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def notice(self, text: str) -> None:
        """Show a message to the user, such as a damaged checkpoint."""
        self.console.print(f"note: {text}", style="yellow", soft_wrap=True)

    def baselines(self, measured: Baselines) -> None:
        """Show the results of the baselines."""
        self._baselines = measured
        if measured.rewards:
            parts = [f"{name} {digits(reward)}" for name, reward in measured.rewards.items()]
            self.console.print(f"held-out paths, mean episode reward: {', '.join(parts)}", soft_wrap=True)
            if ORACLE in measured.rewards and not measured.oracle_bounds:
                self.notice("here the oracle, which fills its link, is not the maximum: fractions of it are not shown")

    def update(self, step: int, reward: float | None, steps_per_second: float) -> None:
        """Show a finished update.

        Args:
            step: Decisions so far, over all runs of a resumed training.
            reward: Mean reward of recent training episodes, exploration included; None before the first episode's end.
            steps_per_second: Steps per second of this update, environments and learning together.
        """
        parts = [f"{_count(step)} steps", f"{_count(steps_per_second)}/s"]
        if reward is not None:
            parts.append(f"reward {digits(reward)}")
        if self._best is not None:
            parts.append(f"best {self._of_oracle(self._best)}")
        self._bar.update(self._task, completed=min(step, self._steps), note="  ".join(parts))

    def evaluation(self, step: int, result: EvaluationResult, *, best: bool) -> None:
        """Show a finished evaluation."""
        reward = result.mean_reward
        if best:
            self._best = reward
        net = result.metrics
        seen = [
            f"{_count(step):>6} steps",
            f"reward {digits(reward):>8}",
            f"{self._of_oracle(reward):>15}",
            *(f"{net[key]:{form}} {unit}" for key, form, unit in _SHOWN if key in net),
            f"{time.perf_counter() - self._began:6.0f} s",
        ]
        self.console.print("  ".join(seen) + ("  best" if best else ""), soft_wrap=True)

    def _of_oracle(self, reward: float) -> str:
        known = self._baselines
        fraction = known.fraction_of_oracle(reward) if known is not None and known.oracle_bounds else None
        return digits(reward) if fraction is None else f"{100 * fraction:.1f} % of oracle"


_SHOWN = (
    ("throughput_mbps", "7.2f", "Mbit/s"),
    ("delay_p95_ms", "7.1f", "ms p95"),
)


def _count(number: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.0f}"


def digits(reward: float) -> str:
    """Return a reward with four significant digits, and at least one digit after the decimal point."""
    magnitude = math.floor(math.log10(abs(reward))) if reward and math.isfinite(reward) else 0
    return f"{reward:.{min(6, max(1, 3 - magnitude))}f}"


SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class StopRequest:
    """A context manager in which SIGINT and SIGTERM are stop requests instead of killing the process.

    Only the main thread gets signals; in any other thread, nothing changes.

    Args:
        say: Function that shows a line to the user.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._wanted = False
        self._say = say
        self._before: dict[int, Any] = {}

    def __enter__(self) -> StopRequest:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._on_signal) for number in SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def requested(self) -> bool:
        """Return whether a stop was requested."""
        return self._wanted

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._wanted:
            raise KeyboardInterrupt
        self._wanted = True
        self._say(f"{signal.Signals(number).name}: stopping after this update; a second signal stops immediately")
