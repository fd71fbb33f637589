"""Flows and their schemes: schemes of ccgym, policies, the kernel's TCP, QUIC, external programs, Python classes.

===================  ======================================================================================
``scheme``           a scheme with parameters: checks, names, style, errors
``reading``          parser of typed schemes: ``fixed_window:cwnd=100``
``native``           schemes of the registry, and policies
``registry``         the native registry
``groups``           names of groups of schemes
``policies``         exported policies: finding and loading them
``policy_card``      information about a policy
``kernel``           the kernel's congestion control, ``tcp:NAME``, on real paths
``programs``         external programs, ``program:NAME``, on real paths
``quic``             congestion controllers of a QUIC library, ``quic:NAME``, on real paths
``python_classes``   schemes written in Python, ``FILE.py:CLASS``
``parameter_files``  files that are parameters of schemes
``events``           arguments of the methods of schemes in Python
``flow``             a flow: scheme, start, round-trip time, source, transport
``style``            names, colors and markers of schemes
===================  ======================================================================================

May import ``emulation`` and the packages below it in ``ARCHITECTURE.md``.
"""
