"""Configuration: strict YAML, validated models, the network path, distributions of paths, and agents.

===========================  ================================================================================
``yaml_parser``              YAML with line numbers and without ambiguous values
``yaml_extends``             merging of a file with the file that it extends
``yaml_loader``              files, overrides, and errors with file and line
``quantities``               field types with units, for pydantic models
``models``                   models of the native core: queues, links, elements, sources, flows, agents
``model_builder``            builds these models
``declared``                 base classes of these models
``short_forms``              short forms of mappings
``expressions``              amounts, signals and operations of agents
``mahimahi``                 reader of mahimahi's command line
``mahimahi_queue``           reader of mahimahi's queue options
``mahimahi_writer``          writer of a path as a mahimahi command line
``catalog``                  the named traces and paths of ``traces/paths.yaml``
``catalog_file``             entries of the catalog
``capacity``                 capacity over time
``chain``                    elements in a row, and their properties: rate, delay, traces
``path``                     :class:`NetworkPath`
``hosts``                    the path between two machines
``configurations``           search of configurations by name
``best_windows``             the best constant windows of paths (``traces/best_windows.csv``)
``path_arguments``           the arguments of a path, converted to a chain or to changes of a chain
``path_check``               checks of a path, beyond checks of its traces
``random_variables``         random variables with units
``sampled_path``             the base of all distributions of paths, and a drawn path
``changing_rates``           rates that change over time
``bottleneck``               distributions of paths with one bottleneck
``distributions``            all distributions of paths, by name (``configs/paths``) and by kind
``grown``                    curricula that add paths by measured results
``curriculum``               distributions that change during training
``agent``                    :class:`~ccgym.config.agent.AgentConfig`: the complete agent
===========================  ================================================================================

May import ``tracetools`` and the packages below it in ``ARCHITECTURE.md``.
"""
