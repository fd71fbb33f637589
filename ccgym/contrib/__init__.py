"""Additional features that no other package needs: work with several trainings, policies from other programs,
and proofs.

===================  ========================================================================================
``recording``        trains several seeds, measures them on fresh draws, exports the median seed
``confirmation``     measures policies and baselines on fresh draws
``comparison``       compares trainings on fresh draws, with intervals
``population``       trainings of several seeds and varied settings on a Ray cluster
``others``           policies that ccgym did not train, exported as schemes
``sb3_model``        a model saved by Stable-Baselines3
``foreign_network``  a network from another program, as an ONNX file
``certificate``      properties of an exported policy that are proven for boxes of observations
``bounds``           bounds on the answers of an exported network over a box of inputs
===================  ========================================================================================

Only ``cli`` may import it; it may import ``training`` and the packages below it in ``ARCHITECTURE.md``.
"""
