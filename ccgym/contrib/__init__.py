"""Products of their own on top of the rest, which nothing else needs: what is done with several trainings, policies
that others trained, and proofs.

===================  ========================================================================================
``recording``        several seeds trained, confirmed on fresh draws; the median one exported
``confirmation``     policies and baselines on fresh draws
``comparison``       trainings compared on fresh draws, with intervals
``population``       trainings of several seeds, and of settings that are varied, on a Ray cluster
``others``           policies that ccgym did not train, as schemes
``sb3_model``        a model that Stable-Baselines3 saved
``foreign_network``  a network that was made outside ccgym, as an ONNX file
``certificate``      properties of an exported policy that hold everywhere in boxes of observations
``bounds``           bounds on the answers of an exported network over a box of inputs
===================  ========================================================================================

Only ``cli`` may import it; it may import ``training`` and what stands below it in ``ARCHITECTURE.md``.
"""
