"""Base of the algorithms that imitate: a learner in SB3's form whose updates are supervised learning. Also, parts of
all algorithms that train networks: schedules, and the arguments of SB3's policies.

The policy is SB3's, so evaluation, export, hashes and checkpoints work without changes. The learner has no useful value
function and no rollout buffer; a subclass defines what a rollout collects, and how the policy is fitted to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from gymnasium import spaces
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.policies import ActorCriticPolicy, BasePolicy
from stable_baselines3.common.utils import LinearSchedule
from torch import nn
from typing_extensions import override

from ccgym.training.algorithms.config import AlgorithmBase, Cosine, Linear, NetworkAlgorithm, Schedule
from ccgym.training.tree_policy import TreePolicy

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env import VecEnv

Floats: TypeAlias = npt.NDArray[np.float32]
Memory: TypeAlias = tuple[torch.Tensor, torch.Tensor]
"""h and c of an LSTM, (layers, rows, units) each."""


class SupervisedLearner(OnPolicyAlgorithm):
    """A learner without returns. Subclasses override ``collect_rollouts`` and ``train``.

    Args:
        config: Settings of the algorithm; the policy is recurrent if ``memory`` is set.
        env: The training environments.
        device: Device of the networks.
        **optimizer: Arguments of Adam.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {
        "MlpPolicy": ActorCriticPolicy,
        "MlpLstmPolicy": RecurrentActorCriticPolicy,
        "TreePolicy": TreePolicy,
    }

    own: ClassVar[tuple[str, ...]] = ("actor", "config")
    """Attributes that are not part of SB3's file."""

    def __init__(self, config: AlgorithmBase, env: VecEnv, device: str, **optimizer: Any) -> None:
        name, norm = "TreePolicy", 1.0
        arguments: dict[str, Any] = {}
        rate: Any = 0.0
        if isinstance(config, NetworkAlgorithm):
            name = "MlpPolicy" if config.memory is None else "MlpLstmPolicy"
            arguments = policy_arguments(config, ortho_init=True, **optimizer)
            rate, norm = schedule(config.learning_rate), config.max_grad_norm
        super().__init__(
            name,
            env,
            learning_rate=rate,
            n_steps=config.n_steps,
            gamma=config.discount,
            gae_lambda=1.0,
            ent_coef=0.0,
            vf_coef=0.0,
            max_grad_norm=norm,
            use_sde=False,
            sde_sample_freq=-1,
            policy_kwargs=arguments,
            verbose=0,
            device=device if isinstance(config, NetworkAlgorithm) else "cpu",
            seed=None,
        )
        self.config: Any = config
        self.actor = SequenceActor(self.policy)
        """Actor in the environments; its memory continues from one rollout to the next."""

    @override
    def _setup_model(self) -> None:
        """Create only the policy: rollouts are not stored in SB3's buffer."""
        self._setup_lr_schedule()
        made = self.policy_class(
            self.observation_space, self.action_space, self.lr_schedule, use_sde=False, **self.policy_kwargs
        )
        self.policy = made.to(self.device)  # type: ignore[assignment]
        self.rollout_buffer = None  # type: ignore[assignment]

    @override
    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), *self.own]

    @override
    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        modules, others = super()._get_torch_save_params()
        return ([name for name in modules if hasattr(self.policy, "optimizer") or "optimizer" not in name], others)

    # --- Checkpoints --------------------------------------------------------------------------------------------------

    def extra_state(self) -> dict[str, Any]:
        """Return all that the next update needs in addition to weights and optimizer: plain data and arrays."""
        return {"memory": self.actor.state()}

    def set_extra_state(self, state: Mapping[str, Any]) -> None:
        """Continue from the result of :meth:`extra_state`."""
        self.actor.restore(state["memory"])


def action_scores(
    policy: ActorCriticPolicy, observations: torch.Tensor, memory: Memory | None = None
) -> tuple[torch.Tensor, Memory | None]:
    """Evaluate a policy on sequences: return the scores of discrete actions, or the mean of other actions.

    Args:
        policy: SB3's policy, recurrent or not.
        observations: (decisions, rows, features).
        memory: Memory of the LSTM before the first decision; None: empty.

    Returns:
        (decisions, rows, actions), and the memory after the last decision, None without an LSTM.
    """
    latent = observations
    lstm: nn.LSTM | None = getattr(policy, "lstm_actor", None)
    if lstm is not None:
        latent, memory = lstm(latent, memory)
    output: torch.Tensor = policy.action_net(policy.mlp_extractor.forward_actor(latent))
    return output, memory


class SequenceActor:
    """An actor that uses a policy in several environments, step by step; a recurrent policy's memory is kept.

    Args:
        policy: SB3's policy, recurrent or not, or a tree.
    """

    def __init__(self, policy: Any) -> None:
        self._policy = policy
        self.memory: Memory | None = None

    def scores(self, observations: Floats, starts: npt.NDArray[np.bool_]) -> torch.Tensor:
        """Return the scores of discrete actions, or the mean of other actions: (rows, actions).

        Args:
            observations: (rows, features).
            starts: Whether the episode of each row has just begun; then the memory of the row is cleared.
        """
        with torch.no_grad():
            if self.memory is not None and starts.any():
                going_on = torch.from_numpy(~starts).to(self.memory[0]).reshape(1, -1, 1)
                self.memory = (self.memory[0] * going_on, self.memory[1] * going_on)
            rows = torch.from_numpy(observations).to(self._policy.device).unsqueeze(0)
            output, self.memory = action_scores(self._policy, rows, self.memory)
        return output[0]

    def act(self, observations: Floats, starts: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
        """Return the most likely actions: (rows,) int64 for discrete actions, else (rows, numbers) float32."""
        if isinstance(self._policy, TreePolicy):
            return self._policy.choose(observations)
        output = self.scores(observations, starts)
        chosen = output.argmax(-1) if isinstance(self._policy.action_space, spaces.Discrete) else output
        actions: npt.NDArray[Any] = chosen.cpu().numpy()
        return actions

    def state(self) -> Any:
        """Return the memory, for a checkpoint."""
        return None if self.memory is None else [part.cpu().numpy() for part in self.memory]

    def restore(self, state: Any) -> None:
        """Continue with the memory from :meth:`state`."""
        if state is None:
            self.memory = None
        else:
            hidden, cell = (torch.from_numpy(np.array(part)).to(self._policy.device) for part in state)
            self.memory = (hidden, cell)


def schedule(value: Schedule) -> float | Callable[[float], float]:
    """Return SB3's form of a schedule: a number, or a function of the remaining fraction of the run."""

    if isinstance(value, Linear):
        return LinearSchedule(value.linear[0], value.linear[1], 1.0)
    return CosineSchedule(*value.cosine) if isinstance(value, Cosine) else value


@dataclass(frozen=True)
class CosineSchedule:
    """A function of the remaining fraction of the run, like SB3's ``LinearSchedule``."""

    first: float
    last: float

    def __call__(self, remaining: float) -> float:
        """Return the value at this remaining fraction."""
        return self.last + (self.first - self.last) * 0.5 * (1.0 - math.cos(math.pi * remaining))


def policy_arguments(algorithm: NetworkAlgorithm, *, ortho_init: bool, **optimizer: Any) -> dict[str, Any]:
    """Return the arguments of SB3's policies, also of recurrent ones, from an algorithm's configuration.

    Args:
        algorithm: Configuration of the algorithm.
        ortho_init: Whether initial weights are orthogonal.
        **optimizer: Arguments of the optimizer.
    """

    kinds = {"tanh": nn.Tanh, "relu": nn.ReLU, "elu": nn.ELU, "silu": nn.SiLU}
    arguments: dict[str, Any] = {
        "net_arch": algorithm.net_arch.model_dump(mode="json"),
        "activation_fn": kinds[algorithm.activation],
        "ortho_init": ortho_init,
        "optimizer_kwargs": optimizer,
    }
    lstm = algorithm.memory
    if lstm is not None:
        arguments |= {
            "lstm_hidden_size": lstm.hidden_size,
            "n_lstm_layers": lstm.layers,
            "shared_lstm": lstm.critic == "shared",
            "enable_critic_lstm": lstm.critic == "own",
        }
    return arguments
