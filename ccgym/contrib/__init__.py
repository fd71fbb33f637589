"""Products of their own on top of the rest, which nothing else needs.

===============  ============================================================================================
``certificate``  properties of an exported policy that hold everywhere in boxes of observations
``bounds``       bounds on the answers of an exported network over a box of inputs
===============  ============================================================================================

Only ``cli`` may import it; it may import ``training`` and what stands below it in ``ARCHITECTURE.md``.
"""
