"""Video: a source of flows, its numbers in records and tables."""

from __future__ import annotations

from typing import Any

import pytest

import ccgym
from ccgym.config.models import GreedySource, MediaSource
from ccgym.errors import CcgymError
from ccgym.schemes.flow import flow_spec
from tests.refusals import refused

PATH = {"rate": "3mbps", "rtt": "40ms", "queue": "100p"}


def _run(flow: dict[str, Any]) -> ccgym.RunRecord:
    return ccgym.simulate(PATH, [flow], duration="10s")


def test_frames_cross_the_path() -> None:
    video = {"kind": "media", "frame_rate": 25, "min_rate": "100kbps", "max_rate": "1mbps", "key_interval": "1s"}
    run = _run({"scheme": "fixed_rate:rate_mbps=2", "profile": "udp", "source": video})
    flow = run.flows[0]
    assert flow.bit_rate_mbps == pytest.approx(1.0, rel=0.02)
    # A frame of 4464 bytes is four packets; paced at 2 Mbit/s they take 18 ms, the last one 4 ms more at the link.
    assert 38 < flow.frame_delay_ms < 60
    assert flow.frame_delay_p95_ms > flow.frame_delay_ms
    # The frame at the end is on its way.
    assert 0 < flow.frame_loss < 0.02
    assert ccgym.RunRecord.from_json(run.to_json()).flows == run.flows


def test_frames_are_skipped_behind_a_slow_sender() -> None:
    flow = _run({"scheme": "fixed_rate:rate_mbps=0.5", "profile": "udp",
                 "source": {"kind": "media", "min_rate": "1mbps"}}).flows[0]  # fmt: skip
    # The encoder makes twice of what leaves. When the oldest frame has waited for 500 ms, the newest has 1 s to wait.
    assert 0.45 < flow.frame_loss < 0.65
    assert 500 < flow.frame_delay_p95_ms < 1200


def test_other_flows_have_no_frames() -> None:
    flow = _run({"scheme": "cubic"}).flows[0]
    assert (flow.frame_delay_ms, flow.frame_delay_p95_ms, flow.frame_loss, flow.bit_rate_mbps) == (None,) * 4


def test_media_over_tcp_is_refused() -> None:
    with refused(CcgymError, "simulation-refused"):
        _run({"scheme": "cubic", "source": "media"})


def test_a_scheme_for_media_takes_the_source_of_itself() -> None:
    assert flow_spec("webrtc").source == MediaSource()
    assert flow_spec({"scheme": "webrtc", "source": "greedy"}).source == GreedySource()
    assert flow_spec("cubic").source == GreedySource()
    flow = _run({"scheme": "webrtc"}).flows[0]
    assert flow.bit_rate_mbps < 1.0
