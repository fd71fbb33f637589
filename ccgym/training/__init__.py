"""Training: from a YAML file to a policy; resumable at any time, and reproducible from a seed.

=====================  =====================================================================================
``config``             the YAML file: agent, environment, algorithm, run, evaluation
``trainer``            the loop: rollout, update, evaluation, checkpoint
``session``            the parts of a training, and the base of callbacks
``environments``       the environments of a configuration
``training_env``       training environments, which can be captured and restored; flows of earlier selves
``ppo``                PPO: rollouts in the native core, advantages, the loss and its gradient
``gaussian_policy``    networks with a hand-written gradient of PPO's loss
``algorithms``         DAgger, distillation, the cross-entropy method, and the settings of all
``model``              the learner from a configuration, and models on disk; threads, device, hashes
``normalizer``         running statistics of features and rewards
``privileged_critic``  a value function with the ground truth about the path as input
``evaluation``         a policy or a baseline on the held-out paths, and on fresh draws
``callbacks``          actions between updates: records, evaluations, pictures
``gaps``               curricula that grow by gaps between the rewards of schemes, or of a scheme and the policy
``checkpoint``         checkpoints, written atomically
``run_directory``      the files of a run, and its lock
``logs``               progress tables and TensorBoard's events, which continue when a run is resumed
``progress``           output on the terminal; SIGINT and SIGTERM as requests to stop
``streams``            seeds by name, and the state of all generators
``export``             the policy of a run as ONNX with its card
``tree_policy``        a decision tree as a policy
``torch_policy``       the trained policy, as trained and in float64
``onnx_graph``         ONNX graphs, built node by node
``parity``             comparison of the exported policy with the trained policy
=====================  =====================================================================================

Names are loaded on first use: ``import ccgym.training`` does not load torch.

May import ``report`` and the packages below it in ``ARCHITECTURE.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ccgym.lazy import lazy

if TYPE_CHECKING:
    from ccgym.training.config import TrainConfig
    from ccgym.training.export import export_policy
    from ccgym.training.model import TrainedModel, load_model
    from ccgym.training.trainer import Outcome, Trainer, train

__all__ = ["Outcome", "TrainConfig", "TrainedModel", "Trainer", "export_policy", "load_model", "train"]

_LAZY: Final = {
    "Outcome": "ccgym.training.trainer",
    "TrainConfig": "ccgym.training.config",
    "TrainedModel": "ccgym.training.model",
    "Trainer": "ccgym.training.trainer",
    "export_policy": "ccgym.training.export",
    "load_model": "ccgym.training.model",
    "train": "ccgym.training.trainer",
}

__getattr__, __dir__ = lazy(__name__, _LAZY)
