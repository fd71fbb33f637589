"""Experiments: paths × schemes × repetitions, with sweeps, draws, metrics, criteria and figures, described in YAML.

====================  =================================================================================================
``load``              reads a YAML file, or a name in ``configs/experiments``
``spec``              models of the YAML
``sweep``             ``--sweep``: a path that varies, or an experiment with other values
``placeholders``      ``$rate`` and ``$(2 * owd)``
``draws``             random values
``transfers``         flows that start as a Poisson process
``expand``            conditions of sweeps, scenarios of conditions, seeds
``sample``            the counts of a run over time
``detail``            details of first runs for pages: ccperf's tables, the flows over time
``operating_points``  mean operating points of such a run: each flow, all flows together, the optimum
``metrics``           numbers of a run, one file each
``criteria``          conditions on means of metrics
``results``           results of experiments
``request``           options of the command line, and the directory of the results
``run``               execution of experiments
``requirements``      a document's requirements as experiments, and a sample of their runs with real packets
``catalogue``         sets of experiments that are run one after the other
``training``          training paths of a learned policy
``comparison``        base of scorecards and gaps: evaluations side by side
``scorecard``         schemes on many paths: scores, rankings, confidence intervals
``gap``               the same schemes and seeds on several backends
``league``            schemes against each other in games, on paths of several kinds
``games``             winners of games, and ratings of single schemes
``adversary``         search for paths on which a scheme is far from the oracle; minimization, confirmation
``adversary_search``  the search, and the simplification of a path
``adversary_finds``   the finds, and their files
``adversary_space``   the candidate paths of the search, and simpler paths
``score``             one number for a run on a path; which schemes are Pareto-optimal
====================  =================================================================================================

``ccgym evaluate --experiment NAME|FILE`` runs one; ``docs/guides/experiments.md`` explains the YAML.

May import ``evaluation`` and the packages below it in ``ARCHITECTURE.md``.
"""
