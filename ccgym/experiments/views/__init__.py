"""Results that are computed from the runs of experiments, a file for each kind.

==================  =====================================================================
``verdicts``        verdicts on criteria, from means over runs
``results``         results of experiments with criteria, for tables and reports
``league``          a ranking of schemes over sections of paths; ``league_section`` is one section
``games``           winners on a path (ccBench's games), and ratings
``scorecard``       scores on many paths; ``path_result`` has the scores on one path
``score``           one number for a run: the logarithm of its power
``gap``             the same runs on several backends, and their differences
``requirements``    a document's requirements, row by row
==================  =====================================================================
"""
