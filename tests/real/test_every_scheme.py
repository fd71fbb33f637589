"""Every scheme sends over the emulated path with real packets, and delivers there what it does in the simulator.

How far the two agree is measured with care by ``ccgym compare backends``; here runs are short, so the bounds are wide:
they show a scheme that does not work over UDP endpoints at all. One at a time: some begin with more than a machine can
send.
"""

from __future__ import annotations

import pytest

from ccgym.config.path import NetworkPath
from ccgym.evaluation import backends
from ccgym.schemes import policies
from ccgym.schemes.registry import registry

pytestmark = pytest.mark.real("netns")

PATH = {"rate": "6mbps", "rtt": "20ms", "queue": "40p"}
SECONDS = 1.5
LEFT_OUT = {policies.SCHEME}
"""Decides by a policy, which the tests of policies name."""


def throughput(scheme: str, backend: str) -> float:
    """Mbit/s of one flow."""
    run = backends.backend(backend).run(NetworkPath.from_any(PATH), [scheme], SECONDS, 1)
    return run.total.throughput_mbps or 0.0


@pytest.mark.long
def test_every_scheme_works_with_real_packets() -> None:
    names = [name for name in registry() if name not in LEFT_OUT]
    both = {name: (throughput(name, "emulated"), throughput(name, "sim")) for name in names}
    far = {name: (real, simulated) for name, (real, simulated) in both.items() if not 0.5 < real / simulated < 2}
    assert far == {}, "Mbit/s with real packets, simulated"
