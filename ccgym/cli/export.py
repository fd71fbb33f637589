"""``ccgym train export``: export the policy of a training run, a Stable-Baselines3 model or an ONNX file as a scheme.

Exit status: 0, the policy was exported; for other values see :mod:`ccgym.cli.common`. If the exported policy would
decide differently from the trained one, this is an error, and nothing is written.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from ccgym.cli.command import Command
from ccgym.cli.common import say
from ccgym.invocation import command

_DESCRIPTION: Final = """\
Export the policy of a training run, a model that Stable-Baselines3 saved after training in ccgym's environments
(PPO, A2C, SAC, TD3), or a network from another program. The files are NAME.onnx, the network with its normalization,
and NAME.json, its card. First, the exported policy is compared with the given policy on held-out episodes.
"""

_EXAMPLES: Final = """\
  ccgym train export runs/aurora-1-1
      the best model, into runs/aurora-1-1/export
  ccgym evaluate --trace 77.72mbps --schemes runs/aurora-1-1,bbr,cubic
      the exported policy as a scheme among others
  ccgym train export runs/aurora-1-1 --model final -o mine.onnx
      the model at the end of training, into mine.onnx and mine.json
  ccgym train export model.zip --config aurora.yaml --normalize vecnormalize.pkl
      a file of model.save("model.zip"), for a model trained with VecNormalize in the environment of aurora.yaml;
      SB3 unpickles the content of these files, so use only files from trusted sources
  ccgym train export network.onnx --config mine.yaml
      a file of torch.onnx.export, for a network from another program; mine.yaml describes its inputs and outputs;
      into mine.onnx and mine.json
"""


def _export(arguments: argparse.Namespace) -> int:
    from ccgym.contrib.others import export_any
    from ccgym.training.config import TrainConfig

    made = export_any(
        arguments.source,
        arguments.out,
        config=None if arguments.config is None else TrainConfig.load(arguments.config),
        which=arguments.model,
        algorithm=arguments.algorithm,
        normalize=arguments.normalize,
        name=arguments.name,
        episodes=arguments.episodes,
    )
    card, parity = made.card, made.parity
    like, source = ("trained", "torch") if card.training else ("given", "the network")
    say(f"{card.name}: {card.label}, {card.policy.kind}, {made.onnx.stat().st_size:,} bytes")
    say(
        f"  as {like}, within {parity.max_abs_difference:.1e} over {parity.decisions} decisions "
        f"in {parity.episodes} held-out episodes"
    )
    say(f"  as {source} in float64, bit for bit; {len(parity.trajectories)} trajectories with the same hash")
    say(f"network   {made.onnx}")
    say(f"card      {made.card_file}")
    say(f"to use it: {command('evaluate')} --trace 77.72mbps --schemes {made.onnx},bbr,cubic")
    return 0


EXPORT: Final = Command(
    "export",
    "export a policy as a scheme",
    _export,
    description=_DESCRIPTION,
    examples=_EXAMPLES,
    options={
        "RUN_DIR|MODEL.zip|NETWORK.onnx as source": "a run directory of `ccgym train`, a model of SB3, or a network "
        "of another program",
        "-o, --out OUT": "a .onnx file or a directory (default: RUN_DIR/export, the folder of the file)",
        "--model best|final": "RUN_DIR: which model of the run (default: best)",
        "--config CONFIG": "MODEL.zip, NETWORK.onnx: the configuration with its agent, and with the environment for "
        "the comparison",
        "--algorithm NAME": "MODEL.zip: ppo, a2c, sac or td3 (default: as in the file)",
        "--normalize FILE": "MODEL.zip: the file of VecNormalize.save, if it was used",
        "--name NAME": "name of the scheme (default: the configuration's name)",
        "--episodes N = 5": "number of held-out episodes for the comparison",
    },
    reads={"source": Path, "out": Path},
)
