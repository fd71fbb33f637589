"""Delivery traces in mahimahi's format: generation, reading, checks and conversion.

A trace is a sequence of times in whole milliseconds. Each time is a delivery opportunity of one full packet (1500 bytes
of IP, 1504 with mahimahi's prefix). The last time is also the period. See ``docs/guides/paths.md`` for the exact rules.

============  ==========================================================================
``text``      reading and writing of files; the parser is native
``generate``  constant, Poisson, stepped and synthetic cellular traces
``inspect``   rates, gaps, bursts, percentiles; capacity over time
``check``     checks that run before every evaluation
``convert``   conversion from other formats
============  ==========================================================================

May import ``units``, ``files`` and ``errors``.
"""
