"""Experiments: paths × schemes × repetitions, with sweeps, draws, metrics, criteria and figures, described in YAML.

====================  =================================================================================================
``load``              reads a YAML file, or a name in ``configs/experiments``
``spec``              what the YAML says
``sweep``             ``--sweep``: a path that varies, or an experiment with other values
``placeholders``      ``$rate`` and ``$(2 * owd)``
``draws``             random values
``transfers``         flows that begin as a Poisson process
``expand``            conditions of sweeps, scenarios of conditions, seeds
``sample``            the counts of a run over time
``detail``            what is kept of first runs for pages: ccperf's tables, the flows over time
``operating_points``  mean operating points of such a run: flows, all together, the optimum
``metrics``           numbers of a run, one file each
``criteria``          what their means have to be
``results``           what came out
``request``           what is asked on the command line, and the directory of the results
``run``               all of it together
``requirements``      a document's requirements as experiments, and a sample of their runs with real packets
``catalogue``         sets of experiments that are run one after the other
``training``          what a learned policy was trained on
``comparison``        what the two below have in common: evaluations side by side
``scorecard``         schemes on many paths: scores, rankings, confidence intervals
``gap``               the same schemes and seeds on several backends
``league``            schemes against each other in games, on paths of several kinds
``games``             who wins a game, and how good a scheme is by itself
``adversary``         paths on which a scheme is far from the oracle: searched, minimized, measured, confirmed
``adversary_search``  the search, and how a path is made simpler
``adversary_finds``   what was found, and its files
``adversary_space``   the paths that it may choose, and simpler ones
``score``             one number for a run on a path; which schemes are Pareto-optimal
====================  =================================================================================================

``ccgym evaluate --experiment NAME|FILE`` runs one; ``docs/guides/experiments.md`` explains the YAML.

May import ``evaluation`` and what stands below it in ``ARCHITECTURE.md``.
"""
