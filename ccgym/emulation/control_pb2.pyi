"""The messages of ``crates/ccgym-net/proto/control.proto``, typed as far as we use them."""

from collections.abc import Iterable, Sequence
from typing import Literal

class _Message:
    def SerializeToString(self) -> bytes: ...

class Hello(_Message):
    version: int
    flow: int
    agent: str
    observation_size: int
    action_size: int
    reward_terms: int
    statistics: int
    truth: int
    def __init__(
        self,
        *,
        version: int = ...,
        flow: int = ...,
        agent: str = ...,
        observation_size: int = ...,
        action_size: int = ...,
        reward_terms: int = ...,
        statistics: int = ...,
        truth: int = ...,
    ) -> None: ...

class Interval(_Message):
    sequence: int
    time_ns: int
    observation: Sequence[float]
    statistics: Sequence[float]
    reward: float
    reward_terms: Sequence[float]
    truth: Sequence[float]
    applied_sequence: int
    decision_latency_ns: int
    held: bool
    awaiting: bool
    missed_deadlines: int
    trajectory_hash: int
    def __init__(
        self,
        *,
        sequence: int = ...,
        time_ns: int = ...,
        observation: Iterable[float] = ...,
        statistics: Iterable[float] = ...,
        reward: float = ...,
        reward_terms: Iterable[float] = ...,
        truth: Iterable[float] = ...,
        applied_sequence: int | None = ...,
        decision_latency_ns: int = ...,
        held: bool = ...,
        awaiting: bool = ...,
        missed_deadlines: int = ...,
        trajectory_hash: int = ...,
    ) -> None: ...
    def HasField(self, name: Literal["applied_sequence"]) -> bool: ...

class Summary(_Message):
    steps: int
    duration_s: float
    throughput_mbps: float
    delay_mean_ms: float
    delay_p95_ms: float
    rtt_p95_ms: float
    loss: float
    sent_packets: int
    utilization: float
    fair_share_ratio: float
    def __init__(
        self,
        *,
        steps: int = ...,
        duration_s: float = ...,
        throughput_mbps: float = ...,
        delay_mean_ms: float | None = ...,
        delay_p95_ms: float | None = ...,
        rtt_p95_ms: float | None = ...,
        loss: float = ...,
        sent_packets: int = ...,
        utilization: float | None = ...,
        fair_share_ratio: float | None = ...,
    ) -> None: ...
    def HasField(
        self, name: Literal["delay_mean_ms", "delay_p95_ms", "rtt_p95_ms", "utilization", "fair_share_ratio"]
    ) -> bool: ...

class Ended(_Message):
    interval: Interval
    summary: Summary
    def __init__(self, *, interval: Interval | None = ..., summary: Summary | None = ...) -> None: ...
    def HasField(self, name: Literal["interval", "summary"]) -> bool: ...

class FromSender(_Message):
    hello: Hello
    interval: Interval
    ended: Ended
    def __init__(
        self, *, hello: Hello | None = ..., interval: Interval | None = ..., ended: Ended | None = ...
    ) -> None: ...
    @staticmethod
    def FromString(data: bytes) -> FromSender: ...
    def WhichOneof(self, group: Literal["body"]) -> str | None: ...

class Action(_Message):
    sequence: int
    time_ns: int
    values: Sequence[float]
    def __init__(self, *, sequence: int = ..., time_ns: int = ..., values: Iterable[float] = ...) -> None: ...

class Stop(_Message):
    def __init__(self) -> None: ...

class ToSender(_Message):
    action: Action
    stop: Stop
    def __init__(self, *, action: Action | None = ..., stop: Stop | None = ...) -> None: ...
    @staticmethod
    def FromString(data: bytes) -> ToSender: ...
    def WhichOneof(self, group: Literal["body"]) -> str | None: ...
