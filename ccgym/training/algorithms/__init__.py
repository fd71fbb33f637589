"""All algorithms except PPO, which is in :mod:`ccgym.training.ppo`, and the settings of all algorithms.

=================  =============================================================================================
``config``         the settings of all algorithms; does not import torch
``dagger``         an expert labels the states that the learner visits, and a network or a tree imitates it
``cross_entropy``  imitation of the best episodes of a group and, for some time, of an expert
``supervised``     base of algorithms that imitate, and parts of all that train networks
``imitation``      base of the algorithms that learn from labels in rounds
=================  =============================================================================================
"""
