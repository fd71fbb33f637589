"""A picture of one evaluation episode in TensorBoard: rate and link rate, delay, queue and action over time."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from typing_extensions import override

from ccgym.training import normalizer as normalizers
from ccgym.training.callbacks.base import Callback
from ccgym.training.evaluation import DeterministicPolicy, evaluate, evaluation_seed

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env import VecEnv

    from ccgym.training.callbacks.evaluation import EvaluationCallback
    from ccgym.training.trainer import Trainer

TAG: Final = "episode/held_out_path_1"
"""The picture's tag."""


class EpisodeFigureCallback(Callback):
    """Runs the first held-out path again after each evaluation, and draws it, where matplotlib is installed."""

    def __init__(self, evaluation: EvaluationCallback) -> None:
        self._evaluation = evaluation
        self._drawn_at = -1
        self._env: VecEnv | None = None

    @override
    def on_start(self, trainer: Trainer) -> None:
        """Draw the policy as it is before any learning."""
        if not trainer.config.evaluation.figure:
            return
        if importlib.util.find_spec("matplotlib") is None:
            trainer.display.notice("matplotlib is not installed, so TensorBoard gets no figures; ccgym[report] has it")
            return
        self._env = normalizers.frozen(trainer.environments.watched(), trainer.normalizer)
        self._drawn_at = self._evaluation.evaluated_at
        if not trainer.resumed:
            self._draw(trainer, self._env)

    @override
    def on_update(self, trainer: Trainer, *, last: bool) -> None:
        """Draw if there has been an evaluation."""
        if self._env is not None and self._evaluation.evaluated_at > self._drawn_at:
            self._drawn_at = self._evaluation.evaluated_at
            self._draw(trainer, self._env)

    def _draw(self, trainer: Trainer, env: VecEnv) -> None:
        from ccgym.report.figures.episode import EpisodeSeries, episode_figure
        from ccgym.report.style import house_style, pixels

        intervals: list[dict[str, float]] = []
        truths: list[dict[str, float]] = []
        actions: list[Any] = []

        def note(chosen: Any, infos: Sequence[dict[str, Any]]) -> None:
            intervals.append(infos[0]["interval"])
            truths.append(infos[0]["privileged"])
            actions.append(np.ravel(chosen[0]))

        result = evaluate(env, DeterministicPolicy(trainer.model), evaluation_seed(trainer.config), note)
        # The last step's truth is that of the next episode.
        truths[-1] = truths[-2] if len(truths) > 1 else truths[-1]

        def of(rows: list[dict[str, float]], name: str) -> Any:
            return np.array([row[name] for row in rows])

        rtt_ms = 1e3 * of(intervals, "mean_rtt_s")
        series = EpisodeSeries(
            time_s=of(intervals, "time_s"),
            sent_mbps=of(intervals, "send_rate_bps") / 1e6,
            delivered_mbps=of(intervals, "delivery_rate_bps") / 1e6,
            link_mbps=of(truths, "link_rate_bps") / 1e6,
            rtt_ms=np.where(rtt_ms > 0, rtt_ms, math.nan),  # zero: nothing was acknowledged
            base_rtt_ms=1e3 * of(truths, "base_rtt_s"),
            queue_packets=of(truths, "backlog_packets"),
            actions=np.stack(actions),
            action_names=trainer.environments.action_names(),
        )
        title = f"held-out path 1 after {trainer.step:,} steps: reward {result.mean_reward:.1f}"
        with house_style():
            image = np.asarray(pixels(episode_figure(series, title)))
        trainer.events.add_image(TAG, image, trainer.step, dataformats="HWC")
