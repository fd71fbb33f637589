"""Distributions of paths: what they draw, that it equals the path it stands for, and how mistakes are reported."""

from __future__ import annotations

import copy
import json
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccgym.config.bottleneck import Ranges
from ccgym.config.distributions import Fixed, Mixture, Named, presets, read_distribution
from ccgym.config.path import NetworkPath
from ccgym.config.random_variables import PACKETS, PLAIN, PROBABILITY, RATE, TIME, RandomVariable, read_random_variable
from ccgym.config.sampled_path import UNITS
from ccgym.errors import ConfigError
from tests.refusals import refused

SECOND = 10**9
SEEDS = st.integers(0, 2**32)


def generator(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def draws(number: RandomVariable, count: int = 400, seed: int = 1) -> list[float]:
    rng, draw = generator(seed), number.sampler()
    return [draw(rng) for _ in range(count)]


# --- Numbers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "dimension", "low", "high"),
    [
        ("3mbps", RATE, 3e6, 3e6),
        ("40 packets/s", RATE, 480_000, 480_000),
        ({"uniform": [100, 500], "unit": "packets/s"}, RATE, 1.2e6, 6e6),
        ({"uniform": ["1.2mbps", "6mbps"]}, RATE, 1.2e6, 6e6),
        ({"log_uniform": ["0.1mbps", "100mbps"]}, RATE, 1e5, 1e8),
        ({"choice": ["12mbps", "24mbps"], "weights": [3, 1]}, RATE, 12e6, 24e6),
        ({"constant": "12mbps"}, RATE, 12e6, 12e6),
        ({"uniform": ["50ms", "0.5s"]}, TIME, 5e7, 5e8),
        ({"uniform": [50, 500], "unit": "ms"}, TIME, 5e7, 5e8),
        ({"exp_uniform": [0, 8], "floor": True, "plus": 1}, PACKETS, 2, 2981),
        ({"uniform": ["10p", "200p"], "floor": True}, PACKETS, 10, 200),
        ({"uniform": [0, 0.05]}, PROBABILITY, 0, 0.05),
        ({"uniform": ["1%", "5%"]}, PROBABILITY, 0.01, 0.05),
        ({"log_uniform": [1e-5, 0.05], "zero_below": 1e-4}, PROBABILITY, 0, 0.05),
        ({"uniform": [0.2, 3]}, PLAIN, 0.2, 3),
    ],
)
def test_numbers_stay_within_their_bounds(written: Any, dimension: Any, low: float, high: float) -> None:
    number = read_random_variable(written, dimension)
    assert number.bounds() == (pytest.approx(low), pytest.approx(high, rel=1e-3))
    values = draws(number)
    assert min(values) >= number.bounds()[0]
    assert max(values) <= number.bounds()[1]
    assert draws(number, seed=7) == draws(number, seed=7)
    assert number.describe()


def test_distributions_have_their_shapes() -> None:
    log = draws(read_random_variable({"log_uniform": ["1mbps", "100mbps"]}, RATE), 4000)
    assert np.median(log) == pytest.approx(1e7, rel=0.15)
    picked = draws(read_random_variable({"choice": ["1mbps", "2mbps"], "weights": [3, 1]}, RATE), 4000)
    assert picked.count(1e6) == pytest.approx(3000, rel=0.05)
    queue = draws(read_random_variable({"exp_uniform": [0, 8], "floor": True, "plus": 1}, PACKETS), 4000)
    assert all(value == int(value) for value in queue)
    assert np.median(queue) == pytest.approx(1 + math.exp(4), rel=0.15)
    loss = draws(read_random_variable({"log_uniform": [1e-5, 0.05], "zero_below": 1e-4}, PROBABILITY), 4000)
    assert all(value == 0 or value >= 1e-4 for value in loss)
    assert loss.count(0.0) / 4000 == pytest.approx(math.log(10) / math.log(5000), rel=0.1)


def test_a_constant_uses_no_randomness() -> None:
    rng = generator(1)
    before = rng.bit_generator.state
    assert read_random_variable("3mbps", RATE).sampler()(rng) == 3e6
    assert read_random_variable({"uniform": ["3mbps", "3mbps"]}, RATE).sampler()(rng) == 3e6
    assert rng.bit_generator.state == before


@pytest.mark.parametrize(
    ("written", "dimension", "part"),
    [
        (3, RATE, "unit-missing"),
        ({"uniform": [1, 5]}, RATE, "unit-missing at uniform"),
        ({"uniform": ["1mbps"]}, RATE, "wrong-count at uniform"),
        ({"uniform": ["5mbps", "1mbps"]}, RATE, "order-wrong at uniform"),
        ({"unifrom": ["1mbps", "5mbps"]}, RATE, "unknown-key at unifrom"),
        ({"uniform": ["1mbps", "2mbps"], "choice": ["3mbps"]}, RATE, "exactly-one"),
        ({"unit": "mbps"}, RATE, "exactly-one"),
        ({"uniform": [0.5, 2], "of": "rate"}, RATE, "unknown-name at of"),
        ({"uniform": [1, 2], "unit": "furlongs"}, RATE, "unknown-unit at uniform"),
        ({"log_uniform": [0, 0.05]}, PROBABILITY, "out-of-range at log_uniform"),
        ({"uniform": [0, 1.5]}, PROBABILITY, "out-of-range at uniform"),
        ({"uniform": [0, 1]}, PROBABILITY, "unit-ambiguous at uniform"),
        ({"uniform": [0, 5]}, PACKETS, "out-of-range at uniform"),
        ({"choice": [1, 2], "weights": [1]}, PLAIN, "wrong-count at weights"),
        ({"choice": [1, 2], "weights": [0, 0]}, PLAIN, "out-of-range at weights"),
        ({"uniform": [1, 2], "weights": [1, 1]}, PLAIN, "option-needed at weights"),
        ({"choice": []}, PLAIN, "wrong-type at choice"),
        ({"exp_uniform": [0, 900]}, PACKETS, "out-of-range at exp_uniform"),
        ({"uniform": [1, 2], "floor": 1}, PLAIN, "wrong-type at floor"),
        ({"uniform": [1, float("nan")]}, PLAIN, "wrong-type at uniform"),
        (float("inf"), PLAIN, "wrong-type"),
        ("94p", PROBABILITY, "unknown-unit"),
        ({"uniform": [1, 2], "unit": "ms"}, PLAIN, "unknown-unit at unit"),
    ],
)
def test_wrong_numbers_are_explained(written: Any, dimension: Any, part: str) -> None:
    with refused(ConfigError, part):
        read_random_variable(written, dimension)


# --- Ranges -------------------------------------------------------------------------------------------------------

RATES = st.sampled_from(["3mbps", {"uniform": ["1mbps", "50mbps"]}, {"log_uniform": ["0.1mbps", "100mbps"]}])
CHANGING = st.builds(
    lambda every: {"max": {"log_uniform": ["1mbps", "9mbps"]}, "min": "0.5mbps", "every": every},
    st.sampled_from(["0s", "0.05s", "1s", {"uniform": ["0s", "15s"]}]),
)
DELAYS = st.sampled_from([{"one_way_delay": {"uniform": ["2ms", "200ms"]}}, {"rtt": "40ms"}, {"rtt": "13ns"}])
QUEUES = st.sampled_from(
    ["94p", "1.5bdp", "infinite", {"packets": {"exp_uniform": [0, 8], "floor": True, "plus": 1}},
     {"bdp": {"uniform": [0.2, 3]}, "min_packets": 2, "round": "down"}, {"packets": {"uniform": [1.5, 9.7]}}]
)  # fmt: skip
LOSSES = st.sampled_from([0, "1%", {"uniform": [0, 0.05]}, {"log_uniform": [1e-5, 0.05], "zero_below": 1e-4}])
STARTS = st.sampled_from(
    [None, "2mbps", {"uniform": [0.3, 1.5], "of": "rate"}, {"constant": 10, "of": "packets_per_rtt"}]
)
RANGES = st.builds(
    lambda rate, delay, queue, loss, at, jitter, start: Ranges.model_validate(
        {"rate": rate, **delay, "queue": queue, "loss": loss, "loss_at": at, "jitter": jitter, "start_rate": start}
    ),
    RATES | CHANGING, DELAYS, QUEUES, LOSSES, st.sampled_from(["before_queue", "after_queue"]),
    st.sampled_from([None, "2ms", {"uniform": ["0ms", "5ms"]}]), STARTS,
)  # fmt: skip


@given(RANGES, SEEDS, st.integers(1, 60))
def test_a_draw_compiles_to_what_its_path_compiles_to(ranges: Ranges, seed: int, seconds: int) -> None:
    drawn = ranges.sample(generator(seed), seconds * SECOND)
    assert drawn.path().compile(seconds * SECOND).as_dict() == drawn.spec()
    assert ranges.sample(generator(seed), seconds * SECOND) == drawn
    assert set(drawn.numbers) <= set(UNITS)
    assert json.loads(json.dumps(drawn.spec())) == drawn.spec()


def test_a_draw_equals_the_path_of_the_same_numbers_written_by_hand() -> None:
    ranges = Ranges.model_validate(
        {"rate": {"uniform": ["1mbps", "9mbps"]}, "rtt": {"uniform": ["10ms", "90ms"]},
         "queue": {"bdp": {"uniform": [0.2, 3]}}, "loss": {"uniform": [0, 0.05]}, "jitter": "2ms"}
    )  # fmt: skip
    for seed in range(50):
        drawn = ranges.sample(generator(seed))
        numbers = drawn.numbers
        path = NetworkPath(
            rate=f"{round(numbers['rate_mbps'] * 1e6)}bps",
            rtt=f"{2 * round(numbers['one_way_delay_ms'] * 1e6)}ns",
            queue=f"{numbers['queue_bdp']!r}bdp",
            loss=numbers["loss"],
            jitter="2ms",
        )
        # The queue comes from the drawn number of products, and is rounded as the path rounds it.
        assert path.compile().as_dict() == drawn.spec()


@given(SEEDS)
def test_aurora_draws_what_its_authors_draw(seed: int) -> None:
    drawn = read_distribution("aurora").sample(generator(seed))
    numbers = drawn.numbers
    assert 1.2 <= numbers["rate_mbps"] <= 6
    assert 50 <= numbers["one_way_delay_ms"] <= 500
    assert 2 <= numbers["queue_packets"] <= 2981
    assert 0 <= numbers["loss"] <= 0.05
    assert 0.3 <= drawn.start_rate_mbps / numbers["rate_mbps"] <= 1.5000001
    assert drawn.uplink[0]["kind"] == "loss"
    assert drawn.facts["base_rtt"] == pytest.approx(2e6 * numbers["one_way_delay_ms"])


@pytest.mark.parametrize("name", ["genet_rl1", "genet_rl2", "genet_rl3"])
@given(seed=SEEDS)
def test_genet_draws_what_its_authors_draw(name: str, seed: int) -> None:
    distribution = read_distribution(name)
    drawn = distribution.sample(generator(seed), 30 * SECOND)
    steps, numbers = drawn.facts["capacity"], drawn.numbers
    rates = [rate / 1e6 for _, rate in steps]
    assert numbers["rate_min_mbps"] - 1e-6 <= min(rates)
    assert max(rates) <= numbers["rate_max_mbps"] + 1e-6
    assert all(start % (SECOND // 10) == 0 for start, _ in steps)
    assert all(start < 30 * SECOND for start, _ in steps)
    ends = [*(start for start, _ in steps[1:]), 30 * SECOND]
    mean = sum(rate * (end - start) for (start, _), end, rate in zip(steps, ends, rates)) / (30 * SECOND)
    assert numbers["rate_mbps"] == pytest.approx(mean, rel=1e-6)
    bdp = max(rates) * 1e6 * 2e-3 * numbers["one_way_delay_ms"] / 12_000
    assert numbers["queue_packets"] == max(2, int(numbers["queue_bdp"] * bdp + 1e-9))
    assert drawn.start_rate_mbps == pytest.approx(10 * 12_000 / (2e-3 * numbers["one_way_delay_ms"]) / 1e6)


def test_a_lower_bound_that_the_upper_one_undercuts_ends_there() -> None:
    rate = {"max": {"log_uniform": ["1mbps", "9mbps"]}, "min": {"uniform": ["0.9mbps", "8mbps"]}, "every": "1s"}
    ranges = Ranges.model_validate({"rate": rate, "rtt": "40ms"})
    for seed in range(100):
        numbers = ranges.sample(generator(seed)).numbers
        assert 0.9 <= numbers["rate_min_mbps"] <= numbers["rate_max_mbps"]


def test_changing_rates_may_be_drawn_by_their_logarithm() -> None:
    rate = {"max": "100mbps", "min": "1mbps", "every": "1s"}
    rates: dict[bool, list[float]] = {}
    for log in (False, True):
        ranges = Ranges.model_validate({"rate": {**rate, "log": log}, "rtt": "40ms"})
        drawn = [ranges.sample(generator(seed), 30 * SECOND).facts for seed in range(40)]
        rates[log] = [value / 1e6 for facts in drawn if facts is not None for _, value in facts["capacity"]]
        assert min(rates[log]) >= 1
        assert max(rates[log]) <= 100
    # Halves of the draws are below the arithmetic and the geometric middle of the bounds.
    assert np.median(rates[False]) == pytest.approx(50.5, rel=0.1)
    assert np.median(rates[True]) == pytest.approx(10, rel=0.25)


# --- The other kinds ----------------------------------------------------------------------------------------------

OTHERS: list[Any] = [
    "77.72mbps",
    "mm-delay 20 mm-link 12mbps.trace 12mbps.trace",
    {"kind": "fixed", "path": {"rate": "12mbps", "rtt": "40ms", "queue": "codel"}},
    {"kind": "named", "names": ["pantheon-1", "77.72mbps"], "weights": [1, 3]},
    {"kind": "traces", "uplink": ["12mbps", "60mbps"], "rtt": {"uniform": ["10ms", "90ms"]}, "loss": "1%"},
    {
        "kind": "traces",
        "uplink": ["12mbps", "60mbps"],
        "downlink": ["1mbps", "5mbps"],
        "weights": [1, 2],
        "one_way_delay": "20ms",
        "queue": {"bdp": {"uniform": [0.5, 2]}},
        "start_rate": {"constant": 0.5, "of": "rate"},
        "jitter": "1ms",
    },
    {
        "kind": "extended",
        "paths": {"kind": "mixture", "parts": [{"paths": "genet_rl1"}, {"paths": "77.72mbps"}, {"paths": "aurora"}]},
        "elements": [
            {"kind": "on_off", "mean_on": "100ms", "mean_off": "2ms", "hold": True},
            {"kind": "jitter", "distribution": "1ms", "direction": "downlink"},
        ],
    },
    {"kind": "mixture", "parts": [{"weight": 0.3, "paths": "genet_rl1"}, {"weight": 0.7, "paths": "12mbps"}]},
]


@pytest.mark.parametrize("written", [*presets(), *OTHERS], ids=str)
def test_every_kind_compiles_as_its_path_does_describes_itself_and_survives_copies(written: Any) -> None:
    distribution = read_distribution(written)
    for seed in range(5):
        drawn = distribution.sample(generator(seed), 10 * SECOND)
        compiled = drawn.path().compile(10 * SECOND)
        assert compiled.as_dict() == drawn.spec()
        assert set(compiled.traces) == set(drawn.traces)
    described = distribution.describe()
    assert described["summary"]
    assert all(row["low"] is None or row["low"] <= row["high"] for row in described["numbers"])
    json.dumps(described)
    again = [
        pickle.loads(pickle.dumps(distribution)),
        copy.copy(distribution),
        copy.deepcopy(distribution),
        read_distribution(distribution.model_dump(mode="json")),
        read_distribution(distribution),
    ]
    for other in again:
        assert other == distribution
        assert other.sample(generator(3), 10 * SECOND).spec() == distribution.sample(generator(3), 10 * SECOND).spec()


def test_a_changed_copy_forgets_what_the_original_had_compiled() -> None:
    one = read_distribution("77.72mbps")
    one.sample(generator(1))
    other = one.model_copy(update={"path": NetworkPath.named("pantheon-1")})
    assert other.sample(generator(1)).numbers != one.sample(generator(1)).numbers


STAIRS: dict[str, Any] = {"kind": "ranges", "rtt": "40ms", "rate": {"top": "100mbps", "period": "22s"}}


def stairs(begin: float, duration: int = 60, **changes: Any) -> list[tuple[float, float]]:
    """Seconds and Mbit/s."""
    paths = read_distribution({**STAIRS, "rate": {**STAIRS["rate"], "begin": begin, **changes}})
    facts = paths.sample(generator(1), duration * SECOND).facts
    return [(start / SECOND, rate / 1e6) for start, rate in facts["capacity"]]


def test_a_staircase_goes_down_and_up_again() -> None:
    whole = stairs(0.0, 44)
    assert [start for start, _ in whole] == list(range(44))
    down = [rate for _, rate in whole[:11]]
    assert down == pytest.approx([100 - 9.9 * step for step in range(11)])
    assert [rate for _, rate in whole[11:22]] == down[::-1]
    assert [rate for _, rate in whole[22:]] == [rate for _, rate in whole[:22]]
    # From the bottom: the complement.
    assert [rate for _, rate in stairs(0.5, 22)] == down[::-1] + down
    # In the middle of a step: the rest of it comes first.
    part = stairs(0.25 / 11, 3)
    assert part == [(0.0, 100.0), (0.5, pytest.approx(90.1)), (1.5, pytest.approx(80.2)), (2.5, pytest.approx(70.3))]
    assert stairs(0.999, 1)[0][1] == 100.0
    assert stairs(0.0, 3, steps=2, bottom=0.5, period="4s") == [(0.0, 100.0), (1.0, 50.0), (2.0, 50.0)]


def test_a_staircase_begins_anywhere() -> None:
    paths = read_distribution(STAIRS)
    rng = generator(1)
    first = [paths.sample(rng, 30 * SECOND) for _ in range(300)]
    rates = [drawn.facts["capacity"][0][1] / 1e6 for drawn in first if drawn.facts]
    assert min(rates) == pytest.approx(1.0)
    assert max(rates) == pytest.approx(100.0)
    assert np.mean(rates) == pytest.approx(50.5, abs=4)
    # Queues are of the link, not of what is left of it.
    assert {drawn.numbers["queue_packets"] for drawn in first} == {334.0}
    assert 30 < np.mean([drawn.numbers["rate_mbps"] for drawn in first]) < 70


def test_muses_links() -> None:
    paths = read_distribution("muses")
    rng = generator(2)
    drawn = [paths.sample(rng, 10 * SECOND) for _ in range(300)]
    assert {one.numbers["queue_bdp"] for one in drawn} == {0.25}
    tops = [max(rate for _, rate in one.facts["capacity"]) for one in drawn if one.facts]
    assert {1e6, 1e7, 1e8, 1e9} <= set(tops)
    assert tops.count(1e9) < 40  # they take ten times as long
    assert 90 < sum(len(one.facts["capacity"]) > 1 for one in drawn if one.facts) < 190


@pytest.mark.parametrize(("name", "bdp"), [("muses_shallow", 0.1), ("muses_full", 1.0)])
def test_other_queues_on_the_same_links(name: str, bdp: float) -> None:
    one, other = (
        [read_distribution(paths).sample(generator(seed)).numbers for seed in range(20)] for paths in ("muses", name)
    )
    queues = ("queue_bdp", "queue_packets")
    assert [{key: row[key] for key in row if key not in queues} for row in one] == [
        {key: row[key] for key in row if key not in queues} for row in other
    ]
    assert {row["queue_bdp"] for row in other} == {bdp}
    assert read_distribution(read_distribution(name).model_dump(mode="json")) == read_distribution(name)


def test_queues_are_replaced_only_where_they_can_be() -> None:
    longer = {"kind": "extended", "paths": "muses", "elements": [{"kind": "loss", "probability": 0.1}]}
    both = read_distribution({"kind": "extended", "paths": longer, "queue": "7p"})
    drawn = both.sample(generator(1))
    assert drawn.numbers["queue_packets"] == 7
    assert [one.kind for one in drawn.path().chain][-1] == "loss"
    with refused(ConfigError, "paths-unsuitable at paths"):
        read_distribution({"kind": "extended", "paths": "77.72mbps", "queue": "7p"})
    with refused(ConfigError, "key-missing at paths"):
        read_distribution({"kind": "extended", "paths": "muses"})


def test_indigo_has_its_thirty_links() -> None:
    links, calibrated = read_distribution("indigo"), read_distribution("indigo_calibrated")
    assert len(set(links.names)) == 30
    assert links.names[24:] == calibrated.names
    path = NetworkPath.named(links.names[0])
    assert (path.one_way_delay_ms, path.loss) == (10, 0)
    assert path.mean_rate_mbps == pytest.approx(5, rel=1e-3)
    assert NetworkPath.named(calibrated.names[0]).one_way_delay_ms == 28


def test_mixtures_and_lists_follow_their_weights() -> None:
    parts = [{"weight": 3, "paths": "pantheon-1"}, {"weight": 1, "paths": "77.72mbps"}]
    mixture = Mixture.model_validate({"parts": parts})
    named = Named(names=("pantheon-1", "77.72mbps"), weights=(3, 1))
    for distribution in (mixture, named):
        rng = generator(1)
        names = [distribution.sample(rng, SECOND).name for _ in range(800)]
        assert names.count("77.72mbps") == pytest.approx(200, rel=0.2)


# --- Curricula ----------------------------------------------------------------------------------------------------


def test_a_path_without_link_has_no_facts() -> None:
    drawn = Fixed(path=NetworkPath.from_mahimahi("mm-delay 10")).sample(generator(1))
    assert drawn.facts is None
    assert drawn.numbers["one_way_delay_ms"] == 10


def test_a_rate_that_changes_too_often_is_refused() -> None:
    rate = {"max": "3mbps", "min": "1mbps", "every": "1us", "grid": "1us"}
    ranges = Ranges.model_validate({"rate": rate, "rtt": "40ms"})
    with refused(ConfigError, "too-large at rate"):
        ranges.sample(generator(1), 60 * SECOND)
