"""What a pretrained policy does on the calibrated paths, for the tests of agents."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ccgym.config.distribution_kinds import INDIGO_CALIBRATED
from ccgym.config.path import NetworkPath
from ccgym.evaluation.prepared_run import Record
from ccgym.evaluation.simulate import simulate
from ccgym.schemes.policies import LearnedPolicy
from ccgym.training.config import TrainConfig

PRETRAINED = Path(__file__).resolve().parents[2] / "agents" / "pretrained"
CALIBRATED = tuple(NetworkPath.named(name).name or name for name in INDIGO_CALIBRATED)


def recorded(name: str) -> pytest.MarkDecorator:
    """Skips what needs a policy that has not been recorded."""
    return pytest.mark.skipif(not (PRETRAINED / f"{name}.onnx").is_file(), reason=f"{name} has not been recorded")


@dataclass(frozen=True)
class Runs:
    """Means over whole runs of 30 s."""

    throughput_mbps: float
    delay_p95_ms: float
    loss: float
    utilization: float
    worst_utilization: float


@lru_cache(maxsize=256)
def measured(scheme: str, path: str, seeds: Iterable[int] = (1, 2, 3)) -> Runs:
    """A scheme alone on a named path."""
    runs = [simulate(NetworkPath.named(path), [scheme], "30s", seed, Record(series=0)) for seed in seeds]
    shares = [run.total.throughput_mbps / (run.link.capacity_mbps or np.inf) for run in runs]
    return Runs(
        throughput_mbps=float(np.mean([run.total.throughput_mbps for run in runs])),
        delay_p95_ms=float(np.mean([run.total.delay_p95_ms or np.inf for run in runs])),
        loss=float(np.mean([1.0 if run.total.loss is None else run.total.loss for run in runs])),
        utilization=float(np.mean(shares)),
        worst_utilization=min(shares),
    )


def check_card(policy: LearnedPolicy, config: TrainConfig) -> None:
    """The card is of the configuration as it is now."""
    card = policy.card
    assert card.agent == config.deployment.applied_to(config.agent).native()
    trained = card.training["config"]
    for section in ("algorithm", "evaluation"):
        assert trained[section] == getattr(config, section).model_dump(mode="json")
    assert trained["training"]["steps"] == config.training.steps


def check_record(name: str, seeds: tuple[int, ...], policy: LearnedPolicy, export: int | None = None) -> None:
    """The record is of the policy, of these seeds, and of nobody's machine; of the median seed unless one is named."""
    texts = {
        end: (PRETRAINED / f"{name}{end}").read_text(encoding="utf-8")
        for end in (".json", "-seeds.json", "-curves.csv")
    }
    content: dict[str, Any] = json.loads(texts["-seeds.json"])
    asked = "" if export is None else f" --export {export}"
    assert content["command"] == f"ccgym record {name} --seeds {','.join(map(str, seeds))}{asked}"
    card = policy.card
    named = {} if export is None else {"asked_for": True}
    assert content["exported"] == {"seed": card.training["seed"], "onnx_sha256": card.onnx_sha256, **named}
    assert hashlib.sha256((PRETRAINED / f"{name}.onnx").read_bytes()).hexdigest() == card.onnx_sha256
    ranked = sorted(content["seeds"], key=lambda row: row["confirmed_reward"])
    median = ranked[(len(ranked) - 1) // 2]["seed"]
    assert card.training["seed"] == (median if export is None else export)
    for text in texts.values():
        assert not [place for place in ("/tmp", "/home", "/root", "/work", "/Users") if place in text]
