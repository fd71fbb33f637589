"""Environments: a learning sender on a simulated or real path, with the interfaces of common training libraries.

===================  =================================================================================
``registration``     the ids ``ccgym/Link-v0``, ``ccgym/Aurora-v0`` …, and their registration in Gymnasium
``config``           the section ``environment`` of a configuration file
``settings``         the settings of an environment, from a configuration file and keyword arguments
``episode``          one episode: a drawn path, its seed, and the specification for the simulator
``batch``            many episodes in parallel, and the arrays with their results
``simulated_batch``  many episodes in the simulator
``rollout``          the samples of many decisions in one native call
``real_batch``       many episodes with real packets
``real_episode``     one episode with real packets, in its run process
``spaces``           Gymnasium's spaces of an agent
``environment``      common parts of all interfaces: random streams, paths, pictures
``link_env``         :class:`LinkEnv`, one path
``vector_env``       :class:`VectorLinkEnv`, many paths in parallel
``sb3``              :class:`SB3LinkVecEnv`, many paths for stable-baselines3
``parallel``         :func:`parallel_env`, several learners on one path, for PettingZoo
``render``           pictures of an episode
===================  =================================================================================

Names are loaded when first used: ``import ccgym.envs`` loads neither Gymnasium nor torch.

May import ``schemes`` and the packages below it in ``ARCHITECTURE.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ccgym.lazy import lazy

if TYPE_CHECKING:
    from ccgym.envs.config import EnvironmentConfig
    from ccgym.envs.link_env import LinkEnv
    from ccgym.envs.parallel import ParallelLinkEnv, parallel_env
    from ccgym.envs.sb3 import SB3LinkVecEnv
    from ccgym.envs.settings import Settings
    from ccgym.envs.vector_env import VectorLinkEnv

__all__ = [
    "EnvironmentConfig",
    "LinkEnv",
    "ParallelLinkEnv",
    "SB3LinkVecEnv",
    "Settings",
    "VectorLinkEnv",
    "parallel_env",
]

_LAZY: Final = {
    "EnvironmentConfig": "ccgym.envs.config",
    "LinkEnv": "ccgym.envs.link_env",
    "ParallelLinkEnv": "ccgym.envs.parallel",
    "SB3LinkVecEnv": "ccgym.envs.sb3",
    "Settings": "ccgym.envs.settings",
    "VectorLinkEnv": "ccgym.envs.vector_env",
    "parallel_env": "ccgym.envs.parallel",
}

__getattr__, __dir__ = lazy(__name__, _LAZY)
