"""Every scheme sends over the emulated path with real packets, and delivers there what it does in the simulator.

How far the two agree is measured with care by ``ccgym gap`` (docs/validation.md); here runs are short and share the
machine, so the bounds are wide: they show a scheme that does not work over UDP endpoints at all.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from ccgym.config.path import NetworkPath
from ccgym.evaluation import backends
from ccgym.schemes import policies
from ccgym.schemes.registry import registry

pytestmark = pytest.mark.real("netns")

PATH = {"rate": "6mbps", "rtt": "20ms", "queue": "40p"}
SECONDS = 4
AT_ONCE = 4
LEFT_OUT = {policies.SCHEME}
"""Decides by a policy, which the tests of policies name."""


def throughput(scheme: str, backend: str) -> float:
    """Mbit/s of one flow."""
    run = backends.backend(backend).run(NetworkPath.from_any(PATH), [scheme], SECONDS, 1)
    return run.total.throughput_mbps or 0.0


def test_every_scheme_works_with_real_packets() -> None:
    names = [name for name in registry() if name not in LEFT_OUT]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        real = dict(zip(names, pool.map(lambda name: throughput(name, "emulated"), names), strict=True))
    simulated = {name: throughput(name, "sim") for name in names}
    far = {name: (real[name], simulated[name]) for name in names if not 0.5 < real[name] / simulated[name] < 2}
    assert far == {}, "Mbit/s with real packets, simulated"
