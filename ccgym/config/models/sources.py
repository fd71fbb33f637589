"""What a flow's application sends.

Written by `make docs` from the declarations in Rust (spec.rs of ccgym-path and ccgym-run, and the
agent's spec): change it there.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from ccgym.config import declared
from ccgym.config.quantities import BytesField, PeriodField, RateField, RateSteps, TimeField


class GreedySource(declared.Declared):
    """Always has data: a bulk transfer without an end."""

    kind: Literal["greedy"] = "greedy"


class BytesSource(declared.Declared):
    """A transfer of a number of payload bytes, all there from the start."""

    kind: Literal["bytes"] = "bytes"
    bytes: BytesField = Field(description="Payload bytes.")


class OnOffSource(declared.Declared):
    """Alternates between always and never having data; exponentially distributed periods, starts on."""

    kind: Literal["on_off"] = "on_off"
    mean_on: PeriodField = Field(description="Mean on period.")
    mean_off: PeriodField = Field(description="Mean off period.")


class RateSource(declared.Declared):
    """An application that produces full segments at a rate: application-limited."""

    kind: Literal["rate"] = "rate"
    rate: RateSteps = Field(description="Payload rate; in steps, times are since the beginning of the run.")
    bytes: BytesField | None = Field(
        default=None, description="Payload bytes after which it ends, in whole segments; absent: it does not."
    )


class ConstantTransferSize(declared.Declared):
    """Always the same."""

    kind: Literal["constant"] = "constant"
    bytes: BytesField = Field(description="Payload bytes.")


class UniformTransferSize(declared.Declared):
    """Evenly between two bounds."""

    kind: Literal["uniform"] = "uniform"
    min: BytesField = Field(description="Minimum.")
    max: BytesField = Field(description="Maximum.")


class LogUniformTransferSize(declared.Declared):
    """Evenly in the logarithm, between two bounds."""

    kind: Literal["log_uniform"] = "log_uniform"
    min: BytesField = Field(description="Minimum.")
    max: BytesField = Field(description="Maximum.")


class ExponentialTransferSize(declared.Declared):
    """Exponentially distributed."""

    kind: Literal["exponential"] = "exponential"
    mean: BytesField = Field(description="Mean.")
    max: BytesField = Field(default=1_000_000_000, description="Maximum: larger sizes are cut to this.")


class ParetoTransferSize(declared.Declared):
    """Pareto: many small ones, few very large ones."""

    kind: Literal["pareto"] = "pareto"
    min: BytesField = Field(description="Minimum.")
    shape: float = Field(ge=0.1, le=100, description="Shape; up to 1 the mean is only finite because of `max`.")
    max: BytesField = Field(default=1_000_000_000, description="Maximum: larger sizes are cut to this.")


class LognormalTransferSize(declared.Declared):
    """Lognormal."""

    kind: Literal["lognormal"] = "lognormal"
    median: BytesField = Field(description="Median.")
    sigma: float = Field(ge=0, le=10, description="Standard deviation of the natural logarithm.")
    max: BytesField = Field(default=1_000_000_000, description="Maximum: larger sizes are cut to this.")


class TableTransferSize(declared.Declared):
    """A table, for example a measured one: linear between its points."""

    kind: Literal["table"] = "table"
    sizes: tuple[BytesField, ...] = Field(min_length=1, max_length=10_000, description="Payload bytes, ascending.")
    fractions: tuple[Annotated[float, Field(ge=0, le=1)], ...] = Field(
        min_length=1,
        max_length=10_000,
        description=(
            "Fraction of the transfers that have at most the size at the same place, ascending; the last one is 1."
        ),
    )


AnyTransferSize: TypeAlias = (
    ConstantTransferSize
    | UniformTransferSize
    | LogUniformTransferSize
    | ExponentialTransferSize
    | ParetoTransferSize
    | LognormalTransferSize
    | TableTransferSize
)
"""Distribution of transfer sizes, bytes of payload."""

TransferSizeField: TypeAlias = Annotated[AnyTransferSize, declared.OneOf("transfer size", declared.read_transfer_size)]


class PoissonSource(declared.Declared):
    """Full segments, or transfers with sizes, that arrive as a Poisson process, independent of earlier ones."""

    kind: Literal["poisson"] = "poisson"
    rate: RateField = Field(description="Mean payload rate.")
    size: TransferSizeField | None = Field(
        default=None, description="Payload of a transfer; absent: each is a full segment. Needs a reliable transport."
    )
    bytes: BytesField | None = Field(
        default=None,
        description="Payload bytes after which it ends, in whole segments or transfers; absent: it does not.",
    )


class RequestsSource(declared.Declared):
    """A server that answers requests one after the other, each when the response before it was acknowledged in full and
    the client has thought: request and response, or web pages over one connection."""

    kind: Literal["requests"] = "requests"
    size: TransferSizeField = Field(description="Payload of a response; a size alone is always the same.")
    think: TimeField = Field(
        default=0, description="Mean time from the end of a response to the next request, exponentially distributed."
    )
    count: int | None = Field(default=None, ge=1, description="Number of responses; absent: until the flow stops.")
    group: int | None = Field(
        default=None,
        ge=0,
        description=(
            "Number of a group of flows that are asked at the same time, once all of them have answered (incast)."
        ),
    )


class MediaSource(declared.Declared):
    """A live video encoder, which follows the scheme's target rate. Needs the profile `udp`."""

    kind: Literal["media"] = "media"
    frame_rate: float = Field(default=30.0, ge=1, le=240, description="Frames per second.")
    min_rate: RateField = Field(
        default=50_000, description="Minimum payload rate of the encoder, at any target of the scheme."
    )
    max_rate: RateField = Field(default=2_500_000, description="Maximum payload rate of the encoder.")
    reaction: TimeField = Field(
        default=200_000_000,
        description="Minimum time between two changes of its rate: what the scheme says meanwhile waits.",
    )
    key_interval: TimeField = Field(default=0, description="Time between key frames; 0: there are none.")
    key_factor: float = Field(
        default=4.0, ge=1, le=100, description="Size of a key frame over that of the others; the mean rate stays."
    )
    max_wait: PeriodField = Field(
        default=500_000_000,
        description="While a frame waits in the sender for longer than this, further ones are skipped.",
    )
    pause: TimeField = Field(default=0, description="Start of a pause, from the start of the flow.")
    resume: TimeField = Field(default=0, description="End of the pause; not after `pause`: no pause.")


AnySource: TypeAlias = (
    GreedySource | BytesSource | OnOffSource | RateSource | PoissonSource | RequestsSource | MediaSource
)
"""The application of a flow."""

SourceField: TypeAlias = Annotated[AnySource, declared.OneOf("source", declared.read_source)]
