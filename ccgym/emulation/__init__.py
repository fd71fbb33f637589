"""The real path, seen from Python: run processes, what they are told, and what they answer.

A run over real packets happens in a process of its own, the *run process*, which hosts namespaces, devices, senders
and receivers as threads. Whatever ends it, a kill included, takes all of that with it.

==============  ========================================================================
``plan``        what a run process is told
``process``     starting, watching and ending it
``control``     the sockets over which environments decide for learning flows
``report``      what it says about the path beside the run's results
``kernel_tcp``  the kernel's congestion controls
``mahimahi``    whether mahimahi's programs are there
``doctor``      what this machine can do
``__main__``    the run process itself
==============  ========================================================================
"""
