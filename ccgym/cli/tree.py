"""``ccgym tree``: the top of a policy that is a decision tree, as a figure.

Exit status: 0, the figure is written; for the rest see :mod:`ccgym.cli.common`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Final

from ccgym.cli.common import HelpFormatter, option, say
from ccgym.errors import ConfigError, shown

_DESCRIPTION: Final = """\
Draw what a decision tree asks first, and how the decisions below are spread over its actions.
"""

_EXAMPLES: Final = """\
examples:
  ccgym tree runs/mine -o tree.png
  ccgym tree mine.onnx --levels 3 -o tree.pdf
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``tree``."""
    made = commands.add_parser(
        "tree",
        help="the top of a decision tree, as a figure",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument("policy", metavar="POLICY", help="a policy, a run directory, or a .onnx file")
    made.add_argument("--levels", type=int, default=4, metavar="N", help="rows of questions, 1 to 5 (default: 4)")
    made.add_argument("-o", "--out", type=Path, required=True, metavar="FILE", help="a .png, .svg or .pdf file")
    made.set_defaults(run=_tree)


def _tree(arguments: argparse.Namespace) -> int:
    from ccgym.report.figures import figure_path, require_drawing
    from ccgym.schemes import policies

    policy = policies.find(arguments.policy, "POLICY")
    if policy is None:
        raise ConfigError(
            "unknown-policy",
            shown(arguments.policy),
            where="POLICY",
            expected="a pretrained policy, a run directory or a .onnx file",
            hint="`ccgym schemes` lists the policies",
        )
    text = policy.native.tree()
    if text is None:
        raise ConfigError(
            "policy-unsuitable",
            f"{policy.title}, of kind {policy.card.policy.kind}",
            where="POLICY",
            expected="a decision tree",
            hint="`ccgym portrait` draws how any policy behaves",
        )
    require_drawing()
    import numpy as np

    from ccgym.report.figures.decision_tree import MAX_LEVELS, DecisionTree, tree_figure
    from ccgym.report.style import house_style, save

    if not 1 <= arguments.levels <= MAX_LEVELS:
        raise ConfigError("out-of-range", str(arguments.levels), where="--levels", expected=f"1 to {MAX_LEVELS}")
    file = option("--out", figure_path, str(arguments.out))
    drawn, agent = json.loads(text), policy.describe_agent()
    tree = DecisionTree(
        nodes=drawn["nodes"],
        visits=np.array(drawn["visits"] or np.ones(len(drawn["nodes"]))),
        features=[row["name"] for row in agent["observation"]],
        actions=[row["name"] for row in agent["action"]],
    )
    with house_style():
        save(tree_figure(tree, title=policy.label, levels=arguments.levels), file, parents=True)
    say(f"tree      {arguments.out}")
    return 0
