"""The gap between simulation and real packets: the same schemes and seeds on every backend, side by side.

===========  =========================================================================================================
``spec``     what the YAML says
``run``      an evaluation for each backend
``results``  what came out, and how far backends are apart
===========  =========================================================================================================
"""
