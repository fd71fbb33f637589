"""Runs over real packets: the processes that carry them out, their jobs, and their results.

A run over real packets happens in a process of its own, the *run process*, which hosts namespaces, devices, senders
and receivers as threads. Whatever ends it, a kill included, takes all of that with it.

==================  ============================================================================
``job``             jobs as JSON documents, and processes that do them
``plan``            the job of a run process
``process``         starting, watching and ending it
``checkout``        which checkout of ccgym runs
``remote``          a run between two machines
``remote_end``      the machine far away, controlled over SSH
``ntp``             how far the clock is off, asked of a time server
``control``         the sockets over which environments decide for learning flows
``kernel_tcp``      the kernel's congestion controls
``programs``        external programs: as a run process takes them, and asking one a question
``quic``            the program that carries flows of QUIC
``mahimahi``        a path as mahimahi's shells, and whether they are installed
``python_schemes``  schemes in Python: their classes of source text, their failures explained
``shell_path``      the path of ``ccgym shell``
``doctor``          what this machine can do
``__main__``        the run process itself
==================  ============================================================================

May import ``config`` and what stands below it in ``ARCHITECTURE.md``.
"""
