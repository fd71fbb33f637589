"""Weaknesses of learned congestion control that later studies found, as tests: ``ccgym evaluate --suite weaknesses``.

========================  =======================================================================
``intra_rtt_fairness``    two flows of a scheme, equal round-trip times
``bandwidth_sweep``       two flows over links of different rates
``cubic_friendliness``    one flow beside one of Cubic
``responsiveness``        a path that changes every ten seconds, against Cubic
``self_inflicted_loss``   losses of a flow that is alone with a small buffer
``startup_recovery``      acknowledgements lost during the start
``stale_estimates``       delay that doubles, capacity that grows eightfold
========================  =======================================================================

``base`` says what a test is, ``rig`` and ``sample`` are what tests have in common, ``training_range`` reads the cards
of learned policies; ``runs`` is what has to be run, ``store`` keeps it, ``results`` is what came out, ``suite`` does it
all. A further test is one file, and a line in :data:`~ccgym.evaluation.weaknesses.suite.TESTS`.
"""

from ccgym.evaluation.weaknesses.suite import SUITE, TESTS

__all__ = ["SUITE", "TESTS"]
