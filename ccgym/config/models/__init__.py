"""What users may write about paths, flows and agents: type, unit, range, default and help of each parameter.

================  ==================================================
``queues``        queue disciplines
``links``         bottlenecks: when they deliver, and what waits there
``elements``      elements of a path: links, delays, losses, jitter and others
``sources``       what a flow's application sends
``flows``         flows, however they are steered
``observations``  what an agent sees
``actions``       what an agent does
``rewards``       what an agent is rewarded for
``experts``       teachers of an agent
``agents``        agents: clock, start-up, guard, and all of it
================  ==================================================

Written by `make docs` from the declarations in Rust (spec.rs of ccgym-path and ccgym-run, and the
agent's spec): change it there.
"""
