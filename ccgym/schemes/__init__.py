"""What a flow is, and the schemes that can carry it: ours, policies, the kernel's TCP, QUIC, programs, Python.

===================  ======================================================================================
``scheme``           a scheme with parameters: how it is checked, named, drawn, refused
``reading``          schemes as one types them: ``fixed_window:cwnd=100``
``native``           schemes of the registry, and policies
``registry``         the native registry
``groups``           words for several schemes
``policies``         exported policies: finding and loading them
``policy_card``      what is known about a policy
``kernel``           the kernel's congestion controls, ``tcp:NAME``, on real paths
``programs``         external programs, ``program:NAME``, on real paths
``quic``             a QUIC library's congestion controllers, ``quic:NAME``, on real paths
``python_classes``   schemes written in Python, ``FILE.py:CLASS``
``parameter_files``  files that are parameters of schemes
``events``           what their methods are given
``flow``             a flow: scheme, start, round-trip time, source, transport
``style``            how a scheme is named and drawn
===================  ======================================================================================

May import ``emulation`` and what stands below it in ``ARCHITECTURE.md``.
"""
