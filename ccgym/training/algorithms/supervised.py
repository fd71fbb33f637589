"""What the algorithms that imitate share: a learner in SB3's form whose updates are supervised learning.

Its policy is SB3's, so evaluation, export, hashes and checkpoints need nothing new. It has no value function worth the
name and no rollout buffer; a subclass says what a rollout collects and what is fitted to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.policies import ActorCriticPolicy, BasePolicy
from typing_extensions import override

from ccgym.training.algorithms.base import AlgorithmBase, policy_arguments, schedule
from ccgym.training.sequences import SequenceActor

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env import VecEnv


class SupervisedLearner(OnPolicyAlgorithm):
    """A learner without returns. Subclasses override ``collect_rollouts`` and ``train``.

    Args:
        config: Its settings; ``memory`` says whether the policy is recurrent.
        env: What it learns in.
        device: Where the networks are.
        **optimizer: Arguments of Adam.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {
        "MlpPolicy": ActorCriticPolicy,
        "MlpLstmPolicy": RecurrentActorCriticPolicy,
    }

    def __init__(self, config: AlgorithmBase, env: VecEnv, device: str, **optimizer: Any) -> None:
        super().__init__(
            "MlpPolicy" if config.memory is None else "MlpLstmPolicy",
            env,
            learning_rate=schedule(config.learning_rate),
            n_steps=config.n_steps,
            gamma=config.discount,
            gae_lambda=1.0,
            ent_coef=0.0,
            vf_coef=0.0,
            max_grad_norm=config.max_grad_norm,
            use_sde=False,
            sde_sample_freq=-1,
            policy_kwargs=policy_arguments(config, ortho_init=True, **optimizer),
            verbose=0,
            device=device,
            seed=None,
        )
        self.actor = SequenceActor(self.policy)
        """Acts in the environments; its memory lasts from one rollout to the next."""

    @override
    def _setup_model(self) -> None:
        """The policy alone: what is collected goes elsewhere."""
        self._setup_lr_schedule()
        made = self.policy_class(
            self.observation_space, self.action_space, self.lr_schedule, use_sde=False, **self.policy_kwargs
        )
        self.policy = made.to(self.device)  # type: ignore[assignment]
        self.rollout_buffer = None  # type: ignore[assignment]

    @override
    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "actor"]

    # --- Checkpoints --------------------------------------------------------------------------------------------------

    def extra_state(self) -> dict[str, Any]:
        """What the next update depends on besides weights and optimizer: plain data and arrays."""
        return {"memory": self.actor.state()}

    def set_extra_state(self, state: Mapping[str, Any]) -> None:
        """Continue from what :meth:`extra_state` gave."""
        self.actor.restore(state["memory"])
