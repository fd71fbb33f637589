"""Configuration: strict YAML, validated models, the network path, distributions of paths, and agents.

===========================  ================================================================================
``yaml_parser``              YAML with line numbers and without YAML's traps
``yaml_extends``             how a file changes the one that it extends
``yaml_loader``              files, overrides and errors with their places
``quantities``               field types that read units, for pydantic models
``models``                   what the native core declares: queues, links, elements, sources, flows, agents
``model_builder``            how those models are built
``declared``                 what those models have in common
``short_forms``              what may be written in place of a whole mapping
``expressions``              amounts, signals and operations of agents
``mahimahi``                 mahimahi's command line, read
``mahimahi_queue``           its options about queues
``mahimahi_writer``          a path as a mahimahi command line
``catalog``                  the named traces and paths of ``traces/paths.yaml``
``catalog_file``             its entries
``capacity``                 capacity over time
``chain``                    elements in a row, and what follows from them: rate, delay, traces
``compiled_path``            a path as the native core takes it
``path``                     :class:`NetworkPath`
``hosts``                    what lies between two machines
``configurations``           where configurations are found by name
``best_windows``             the best constant windows of paths (``traces/best_windows.csv``)
``path_arguments``           the arguments of a path, made into its chain or into changes of one
``path_check``               mistakes in a path that its traces do not show
``random_variables``         random variables with units
``transfer_sizes``           sizes of transfers, drawn outside a run
``sampled_path``             what a distribution of paths is, and a path that was drawn
``changing_rates``           rates that change over time
``bottleneck``               distributions of paths with one bottleneck
``distributions``            all distributions of paths, by name (``configs/paths``) and by kind
``grown``                    curricula whose mixture of paths grows by what is measured
``curriculum``               distributions that change as training goes on
``agent``                    :class:`~ccgym.config.agent.AgentConfig`: clock, start-up, guard, and all of it
===========================  ================================================================================

May import ``tracetools`` and what stands below it in ``ARCHITECTURE.md``.
"""
