"""Runs over real packets: their processes, their jobs, and their results.

A run over real packets is made in a separate process, the *run process*. It hosts namespaces, devices, senders and
receivers as threads. When it ends for any reason, even if killed, all of these end with it.

==================  ============================================================================
``job``             jobs as JSON documents, and processes for them
``plan``            the job of a run process
``process``         starting, watching and ending a run process
``checkout``        the checkout of ccgym that is running
``remote``          a run between two machines
``remote_end``      the other machine, controlled over SSH
``ntp``             the clock offset to a time server
``control``         sockets for the decisions of environments about learning flows
``kernel_tcp``      the kernel's congestion controls
``programs``        external programs: their form for a run process, and short calls of them
``quic``            the program for QUIC flows
``mahimahi``        a path as mahimahi's shells, and whether they are installed
``python_schemes``  schemes in Python: making classes from source text, explaining failures
``shell_path``      the path of ``ccgym shell``
``doctor``          the support of this machine for real packets
``__main__``        the run process itself
==================  ============================================================================

May import ``config`` and the packages below it in ``ARCHITECTURE.md``.
"""
