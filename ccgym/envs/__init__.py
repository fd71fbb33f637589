"""Environments: a learning sender on a path, simulated or real, with the interfaces of the common training libraries.

===================  =================================================================================
``registration``     the ids ``ccgym/Link-v0``, ``ccgym/Aurora-v0`` … and how Gymnasium learns them
``config``           the section ``environment`` of a configuration file
``settings``         what an environment is made of, from such a file and keyword arguments
``episode``          one episode: a drawn path, its seed, and the simulator's specification
``batch``            many episodes in parallel, and the arrays that they write into
``simulated_batch``  the same in the simulator
``rollout``          what many decisions in one go are
``real_batch``       the same with real packets
``real_episode``     one of them, in its run process
``spaces``           Gymnasium's spaces of an agent
``environment``      what all interfaces share: random streams, paths, pictures
``link_env``         :class:`LinkEnv`, one path
``vector_env``       :class:`VectorLinkEnv`, many at once
``sb3``              :class:`SB3LinkVecEnv`, the same for stable-baselines3
``parallel``         :func:`parallel_env`, several learners on one path, for PettingZoo
``render``           pictures of an episode
===================  =================================================================================

Names are loaded when first used: ``import ccgym.envs`` loads neither Gymnasium nor torch.

May import ``schemes`` and what stands below it in ``ARCHITECTURE.md``.
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
