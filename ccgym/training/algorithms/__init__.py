"""The algorithms but for PPO, which is :mod:`ccgym.training.ppo`, and the settings of all.

=================  =============================================================================================
``config``         the settings of all of them; does not import torch
``dagger``         an expert labels the states that the learner comes into, and a network imitates it
``distill``        the same with a decision tree
``cross_entropy``  the best episodes of a group are imitated, and for a while an expert, too
``base``           what they share
``supervised``     what those that imitate share
``imitation``      what the two share that learn from labels in rounds
=================  =============================================================================================
"""
