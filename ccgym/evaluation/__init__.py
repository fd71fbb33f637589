"""Running schemes over paths, and measuring them the way Pantheon and ccperf do.

==================  =====================================================================================
``simulate``        one run: :func:`~ccgym.evaluation.simulate.simulate`
``prepared_run``    what every backend does before and after a run
``backends``        where packets travel: the simulator, our emulated path, mahimahi
``run_record``      what came out of it
``frames``          the same as tables: data frames, CSV
``metrics``         Pantheon's formulas: the only place where they are computed
``ccperf_metrics``  ccperf's flow, link and network metrics
``capacity``        what the bottleneck could carry, over time
``curves``          what a run's figures show, reduced for storage
``experiment``      several schemes, several runs
``runner``          running an experiment, resumably
``store``           its directory
``results``         its results, per scheme
``gap``             the same experiment on several backends, compared
``suites``          many paths or tests in one go: scores and rankings
``flags``           what looks wrong in them
``pantheon``        Pantheon's files
``pantheon_log``    reading Pantheon's and mahimahi's logs
``mahimahi_log``    the header of mahimahi's logs
``provenance``      versions, machine, command line
==================  =====================================================================================
"""
