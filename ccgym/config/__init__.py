"""Configuration: strict YAML, validated models, and the network path.

================  ====================================================================
``yaml_loader``   YAML with line numbers and without YAML's traps
``quantities``    field types that read units, for pydantic models
``queues``        queue disciplines as users write them
``elements``      path elements as users write them
``mahimahi``      mahimahi's command line, read and written
``catalogue``     the named traces and paths of ``traces/paths.yaml``
``path``          :class:`NetworkPath`
================  ====================================================================
"""
