"""Delivery traces in mahimahi's format: making, reading, checking and converting them.

A trace is a sequence of times in whole milliseconds, one delivery opportunity of one full packet (1500 bytes of IP,
1504 with mahimahi's prefix) each; its last value is also its period. The exact rules are in ``docs/guides/paths.md``.

============  ==========================================================================
``text``      reading and writing files; the parser itself is native
``generate``  constant, Poisson, stepped and synthetic cellular traces
``inspect``   rates, gaps, bursts, percentiles; capacity over time
``check``     the detector that runs before every evaluation
``convert``   from other formats
============  ==========================================================================

May import ``units``, ``files`` and ``errors``.
"""
