"""Aurora: the native core against a second reading of the published formulas."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import ccgym  # noqa: F401 (registers the environments)
from tests.reference import aurora

# --- The published formulas ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_the_core_computes_the_published_formulas(seed: int) -> None:
    env = gymnasium.make(aurora.PRESET, privileged=True)
    observation, info = env.reset(seed=seed)
    bits = 8 * aurora.PACKET_BYTES
    rate = info["privileged"]["pacing_rate_bps"] / bits
    reference = aurora.Reference()
    assert observation.tolist() == reference.observation() == list(aurora.EMPTY) * aurora.HISTORY
    rng = np.random.default_rng(seed)
    drift = rng.normal(0, 2)  # up to a full queue in some episodes, down to the least rate in others
    steps, ended = 0, False
    while not ended:
        action = rng.normal(drift, 4, 1).astype(np.float32)
        observation, reward, _, ended, info = env.step(action)
        interval = info["interval"]
        rate = aurora.limited(aurora.next_rate(rate, float(action[0])))
        # The core paces by whole bits per second.
        assert interval["pacing_rate_bps"] / bits == pytest.approx(rate, rel=1e-6, abs=1 / bits)
        assert reward == pytest.approx(reference.digest(interval), rel=1e-6, abs=1e-9)
        np.testing.assert_allclose(observation, reference.observation(), rtol=1e-6, atol=1e-7)
        steps += 1
    env.close()
    assert steps == 400


def test_the_largest_actions_double_and_halve_the_rate() -> None:
    env = gymnasium.make(aurora.PRESET)
    assert (env.action_space.low.tolist(), env.action_space.high.tolist()) == ([-40.0], [40.0])
    assert (aurora.next_rate(1.0, 40.0), aurora.next_rate(1.0, -40.0)) == (2.0, 0.5)
    env.reset(seed=1)
    rates = [env.step([a])[4]["interval"]["pacing_rate_bps"] for a in (0.0, 40.0, -40.0, 1e6)]
    assert rates == pytest.approx([rates[0], 2 * rates[0], rates[0], 2 * rates[0]], abs=4)
    env.close()


def test_the_environment_s_limits_are_the_published_ones() -> None:
    env = gymnasium.make(aurora.PRESET)
    low, high = env.observation_space.low[:3], env.observation_space.high[:3]
    assert list(zip(low.tolist(), high.tolist())) == [
        aurora.INFLATION_BOUNDS,
        aurora.RATIO_BOUNDS,
        aurora.SEND_BOUNDS,
    ]
    env.close()
