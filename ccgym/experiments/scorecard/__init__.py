"""A scorecard: schemes on many paths, a score for each, and rankings over groups of paths.

==============  ======================================================================================================
``spec``        what the YAML says
``run``         an evaluation for each path
``score``       one number for a run on a path; which schemes are Pareto-optimal
``bootstrap``   how sure a ranking is
``scorecard``   what came out
==============  ======================================================================================================
"""
