"""Run schemes over paths, and measure them with the metrics of Pantheon and ccperf.

Running

==================  =====================================================================================
``run``             contenders (named lists of flows) and runs, as data
``prepared_run``    a run checked and compiled, and the record made of its result
``backends``        the packet carriers: the simulator, ccgym's emulated path, mahimahi
``simulate``        one run: :func:`~ccgym.evaluation.simulate.simulate`
``engine``          many runs: kept runs are not repeated, the others run in threads or on a cluster
``cluster``         the same runs on a Ray cluster
``spread``          a quantity over several runs
``run_bundle``      the data that a process of a cluster needs to make runs
``budget``          a time limit for runs
``store``           the runs that a directory keeps
``directory``       the owner of a results directory: one experiment, one process
``threads``         threads that Ctrl-C ends
``progress_file``   progress of runs, for other processes
``experiment``      several schemes on one path, several runs each
``probe``           the delay of a few packets on an empty real path
``runner``          runs an experiment and writes all its files
``best_cwnd``       the best constant window of a path
==================  =====================================================================================

Results

==================  =====================================================================================
``run_record``      the result of one run
``results``         the results of an experiment, per scheme
``metrics``         Pantheon's formulas: the only place where they are computed
``ccperf_metrics``  ccperf's flow, link and network metrics
``ccperf_names``    the table of them: layer, unit, formula, better side
``capacity``        the capacity of the bottleneck over time
``curves``          the data of a run's figures, reduced for storage
``frames``          tables: data frames, CSV
``differences``     the verdict on two schemes: better, worse, or undecided
``compare``         two results side by side
``bootstrap``       the uncertainty of means, differences and rankings
``flags``           warnings and notes about results
``counterfactual``  causes of very low throughput, confirmed by another run
``collapse``        runs that collapsed
``pantheon``        Pantheon's files
``exchange``        results in the formats of other programs
``provenance``      versions, machine, command line
==================  =====================================================================================

May import ``envs`` and the packages below it in ``ARCHITECTURE.md``.
"""
