"""What a flow is, and the schemes that can carry it: ours, exported policies, the kernel's TCP.

=================  ==============================================================================
``registry``       the schemes by name, and how one asks for them: ``fixed_window:cwnd=100``
``policies``       exported policies: finding and loading them
``policy_card``    what is known about a policy
``kernel``         the kernel's congestion controls, ``tcp:NAME``, on real paths
``flow``           a flow: scheme, start, round-trip time, source, transport
``style``          how a scheme is named and drawn
``onnx_runtime``   where the shared library is that evaluates policies
=================  ==============================================================================

May import ``emulation`` and what stands below it in ``ARCHITECTURE.md``.
"""
