"""Metrics by their names in YAML; one small file each. A new metric is a file, and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from ccgym.config.yaml_loader import config_error
from ccgym.errors import ConfigError, did_you_mean, shown
from ccgym.evaluation.ccperf_names import DEFINITIONS
from ccgym.experiments.metrics.base import Measured, Metric
from ccgym.experiments.metrics.ccperf import Ccperf
from ccgym.experiments.metrics.circuit_breaker import CircuitBreaker
from ccgym.experiments.metrics.collapsed import Collapsed
from ccgym.experiments.metrics.completion_time import CompletionTime
from ccgym.experiments.metrics.convergence_time import ConvergenceTime
from ccgym.experiments.metrics.declared_loss import DeclaredLoss
from ccgym.experiments.metrics.delay_p95 import DelayP95
from ccgym.experiments.metrics.delay_percentile import DelayPercentile
from ccgym.experiments.metrics.frame_latency import FrameLatency
from ccgym.experiments.metrics.frame_loss import FrameLoss
from ccgym.experiments.metrics.goodput import Goodput
from ccgym.experiments.metrics.goodput_ratio import GoodputRatio
from ccgym.experiments.metrics.harm import Harm
from ccgym.experiments.metrics.jain import Jain
from ccgym.experiments.metrics.loss import Loss
from ccgym.experiments.metrics.loss_rate import LossRate
from ccgym.experiments.metrics.mean_delay import MeanDelay
from ccgym.experiments.metrics.offered_load import OfferedLoad
from ccgym.experiments.metrics.queueing_delay import QueueingDelay
from ccgym.experiments.metrics.recovery_time import RecoveryTime
from ccgym.experiments.metrics.round_trip_time import RoundTripTime
from ccgym.experiments.metrics.sent_per_rtt import SentPerRtt
from ccgym.experiments.metrics.share import Share
from ccgym.experiments.metrics.state_entry import StateEntry
from ccgym.experiments.metrics.state_next import StateNext
from ccgym.experiments.metrics.state_time import StateTime
from ccgym.experiments.metrics.state_visit import StateVisit
from ccgym.experiments.metrics.throughput import Throughput
from ccgym.experiments.metrics.utilization import Utilization

__all__ = ["METRICS", "Measured", "Metric", "metric_kind", "read_metric"]

METRICS: Final[Mapping[str, type[Metric]]] = {
    "circuit_breaker": CircuitBreaker,
    "collapsed": Collapsed,
    "completion_time": CompletionTime,
    "convergence_time": ConvergenceTime,
    "declared_loss": DeclaredLoss,
    "delay_p95": DelayP95,
    "delay_percentile": DelayPercentile,
    "frame_latency": FrameLatency,
    "frame_loss": FrameLoss,
    "goodput": Goodput,
    "goodput_ratio": GoodputRatio,
    "harm": Harm,
    "jain": Jain,
    "loss": Loss,
    "loss_rate": LossRate,
    "mean_delay": MeanDelay,
    "offered_load": OfferedLoad,
    "queueing_delay": QueueingDelay,
    "recovery_time": RecoveryTime,
    "round_trip_time": RoundTripTime,
    "sent_per_rtt": SentPerRtt,
    "share": Share,
    "state_entry": StateEntry,
    "state_next": StateNext,
    "state_time": StateTime,
    "state_visit": StateVisit,
    "throughput": Throughput,
    "utilization": Utilization,
}


def metric_kind(name: str) -> type[Metric]:
    """Return the class of a metric.

    Raises:
        ConfigError: There is no such metric.
    """
    if name in DEFINITIONS:
        return Ccperf
    if name in METRICS:
        return METRICS[name]
    raise ConfigError(
        "unknown-metric",
        f"no metric is called {shown(name)}",
        expected=f"{', '.join(METRICS)}, or the name of a ccperf metric",
        hint=did_you_mean(name, [*METRICS, *DEFINITIONS]),
    )


def read_metric(key: str, given: Mapping[str, Any]) -> Metric:
    """Return a metric with its options.

    Args:
        key: Its name within the experiment; also the name of the metric if ``metric`` is missing.
        given: ``metric``, ``label``, ``unit`` and the metric's own options.

    Raises:
        ConfigError: There is no such metric, or it has no such option.
    """
    name = str(given.get("metric", key))
    options = {option: value for option, value in given.items() if option != "metric"}
    for own in ("key", "name"):
        if own in options:
            raise ConfigError(
                "unknown-key", f"unknown key {own!r}", expected="the name of the metric in front of its options"
            )
    kind = metric_kind(name)
    if kind is Ccperf:
        options["name"] = name
    try:
        return kind.model_validate({"key": key, **options})
    except ValidationError as error:
        raise config_error(error, kind) from None
