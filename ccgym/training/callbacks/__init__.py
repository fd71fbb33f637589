"""What happens between updates, one file each.

====================  ====================================================================================
``evaluation``        the policy and the baselines on the held-out paths; the best model
``episode_figure``    one evaluation episode as a picture
``system``            speed, where the time goes, memory
``curriculum``        where a curriculum stands
``real_path``         deadlines that were missed on real paths
``configuration``     the configuration as text, once
====================  ====================================================================================

A callback draws nothing from the global random generators, and so changes nothing of what is learned.
"""
