"""What happens between updates.

====================  =======================================================================================
``base``              what a callback is
``evaluation``        the policy and the baselines on the held-out paths; the best model
``episode_figure``    one evaluation episode as a picture
``records``           the configuration, once; speed, memory, curriculum and missed deadlines of every update
====================  =======================================================================================

Callbacks draw nothing from the global random generators, so they do not change what is learned.
"""
