"""What schemes in Python promise and are promised: the same as those in Rust."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ccgym import NetworkPath, Record, simulate, simulate_many
from ccgym.evaluation.simulate import Job

ROOT = Path(__file__).resolve().parents[2]
OTHERS = Path(__file__).with_name("python_schemes.py")
SCHEMES = [f"{ROOT}/examples/aimd.py:AIMD", *(f"{OTHERS}:{name}" for name in ("Paced", "ByRate", "Sleeps"))]

PATHS: dict[str, NetworkPath] = {
    "plain": NetworkPath(rate="12mbps", rtt="40ms", queue="60p"),
    "lossy": NetworkPath(rate="12mbps", rtt="40ms", queue="60p", loss=0.2),
    "one packet of queue": NetworkPath(rate="1mbps", rtt="1ms", queue="1p"),
    "long": NetworkPath(rate="5mbps", rtt="2s", queue="100p"),
}
names = pytest.mark.parametrize("scheme", SCHEMES, ids=lambda text: text.rpartition(":")[2])


def run(path: NetworkPath, flows: list[Any], seed: int = 1, duration: str = "8s") -> Any:
    return simulate(path, flows, duration, seed, Record(packets=True, series="100ms"))


@names
@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_it_delivers_until_the_end(scheme: str, path: NetworkPath) -> None:
    made = run(path, [scheme], duration="20s")
    received = made.series["flows"][0]["received_bytes"]
    assert received[-1] > received[-60] > 0, "it did not stall: something arrived in the last 6 s"


@names
def test_a_run_repeats_and_a_copy_is_independent(scheme: str) -> None:
    path = PATHS["lossy"]
    alone, again, other = run(path, [scheme]), run(path, [scheme]), run(path, [scheme], seed=2)
    assert alone.trajectory_hash == again.trajectory_hash != other.trajectory_hash
    both = run(path, [scheme, scheme])
    assert both.flows[0].sent_packets != alone.flows[0].sent_packets, "they share the link, and nothing else"


@pytest.mark.parametrize("name", ["Paced", "ByRate", "Sleeps"])
def test_a_copy_goes_on_as_its_original_does(name: str) -> None:
    """What the core does to copy a simulation: ``copy.deepcopy``, here before every event."""
    alone, copied = (run(PATHS["lossy"], [f"{OTHERS}:{prefix}{name}"]) for prefix in ("", "Copied"))
    assert alone.trajectory_hash == copied.trajectory_hash
    assert alone.flows[0].sent_packets > 100


def test_threads_change_nothing() -> None:
    jobs = [Job(PATHS["plain"], [scheme], "5s", seed) for scheme in SCHEMES for seed in (1, 2)]
    one, four = (simulate_many(jobs, threads) for threads in (1, 4))
    assert [made.trajectory_hash for made in one] == [made.trajectory_hash for made in four]


@pytest.mark.parametrize("scheme", SCHEMES[:2], ids=["AIMD", "Paced"])
def test_windows_do_not_grow_where_the_application_limits(scheme: str) -> None:
    source = {"kind": "rate", "rate": "1mbps"}
    made = run(PATHS["plain"], [{"scheme": scheme, "source": source}])
    assert made.series["flows"][0]["cwnd_bytes"][-1] <= 20 * 1500
