"""The algorithms but for PPO, which is :mod:`ccgym.training.ppo`, and the settings of all.

=================  =============================================================================================
``config``         the settings of all of them; does not import torch
``dagger``         an expert labels the states that the learner comes into, and a network or a tree imitates it
``cross_entropy``  the best episodes of a group are imitated, and for a while an expert, too
``supervised``     what they share that imitate, and all that train networks
``imitation``      what the two share that learn from labels in rounds
=================  =============================================================================================
"""
