"""``ccgym train export``: the policy of a training run, of a model of Stable-Baselines3 or an ONNX file, as a scheme.

Exit status: 0, the policy was exported; for the rest see :mod:`ccgym.cli.common`. A policy that would not do what the
trained one does is an error, and nothing is written.
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
(PPO, A2C, SAC, TD3), or a network that was made elsewhere: NAME.onnx, the network with its normalization, and
NAME.json, its card. Before they are written, the exported policy is compared with the given one on held-out episodes.
"""

_EXAMPLES: Final = """\
  ccgym train export runs/aurora-1-1
      the best model, into runs/aurora-1-1/export
  ccgym evaluate --trace 77.72mbps --schemes runs/aurora-1-1,bbr,cubic
      … which is then a scheme like any other
  ccgym train export runs/aurora-1-1 --model final -o mine.onnx
      the model at the end of training, into mine.onnx and mine.json
  ccgym train export model.zip --config aurora.yaml --normalize vecnormalize.pkl
      what model.save("model.zip") wrote, of a model trained behind VecNormalize in the environment of aurora.yaml;
      SB3 unpickles what is in these files, so take them from trusted places only
  ccgym train export network.onnx --config mine.yaml
      what torch.onnx.export wrote, of a network that ccgym has no part in; mine.yaml says what its numbers mean:
      mine.onnx and mine.json
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
    "make a scheme of a policy",
    _export,
    description=_DESCRIPTION,
    examples=_EXAMPLES,
    options={
        "RUN_DIR|MODEL.zip|NETWORK.onnx as source": "a run directory of `ccgym train`, a model of SB3, or a network "
        "from elsewhere",
        "-o, --out OUT": "a .onnx file or a directory (default: RUN_DIR/export, the folder of the file)",
        "--model best|final": "RUN_DIR: which model of the run (default: best)",
        "--config CONFIG": "MODEL.zip, NETWORK.onnx: the configuration with its agent, and the environment where it "
        "is compared",
        "--algorithm NAME": "MODEL.zip: ppo, a2c, sac or td3 (default: what the file says)",
        "--normalize FILE": "MODEL.zip: what VecNormalize.save wrote, if there was one",
        "--name NAME": "its name (default: the configuration's)",
        "--episodes N = 5": "held-out episodes of the comparison",
    },
    reads={"source": Path, "out": Path},
)
