"""What is computed from the runs of experiments, a file each.

==================  =====================================================================
``verdicts``        criteria judged by means over runs
``results``         results of experiments with criteria, for tables and reports
``league``          a ranking of schemes over sections of paths; ``league_section`` is one
``games``           who wins on a path (ccBench's games), and ratings
``scorecard``       scores on many paths; ``path_result`` has those on one
``score``           one number for a run: the logarithm of its power
``gap``             the same runs on several backends, and how far they differ
``requirements``    a document's requirements, row by row
==================  =====================================================================
"""
