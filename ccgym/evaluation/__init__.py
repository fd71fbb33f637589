"""Running schemes over paths, and measuring them the way Pantheon and ccperf do.

What is run

==================  =====================================================================================
``run``             contenders (named lists of flows) and runs, as data
``prepared_run``    a run checked and compiled, and the record made of its result
``backends``        where packets travel: the simulator, our emulated path, mahimahi
``simulate``        one run: :func:`~ccgym.evaluation.simulate.simulate`
``engine``          many: what is kept is not run again, the rest is made in threads or on a cluster
``cluster``         the same runs on a Ray cluster
``spread``          a quantity over several runs
``run_bundle``      what a process of a cluster needs to make runs
``budget``          time for runs
``store``           the runs that a directory keeps
``directory``       whose a results directory is
``threads``         threads that Ctrl-C ends
``progress_file``   how far runs are, for other processes
``experiment``      several schemes on one path, several runs each
``probe``           what a few packets wait on an empty real path
``runner``          running that, with all its files
``best_cwnd``       the best constant window of a path
==================  =====================================================================================

What came out

==================  =====================================================================================
``run_record``      of one run
``results``         of an experiment, per scheme
``metrics``         Pantheon's formulas: the only place where they are computed
``ccperf_metrics``  ccperf's flow, link and network metrics
``ccperf_names``    the table of them: layer, unit, formula, better side
``capacity``        what the bottleneck could carry, over time
``curves``          what a run's figures show, reduced for storage
``frames``          tables: data frames, CSV
``differences``     which scheme is better, worse, or undecided
``compare``         two results side by side
``bootstrap``       how sure means, differences and rankings are
``flags``           what looks wrong in results
``counterfactual``  what starved a scheme, where another run confirms it
``collapse``        which runs collapsed
``pantheon``        Pantheon's files
``exchange``        results in the formats of other programs
``provenance``      versions, machine, command line
==================  =====================================================================================

May import ``envs`` and what stands below it in ``ARCHITECTURE.md``.
"""
