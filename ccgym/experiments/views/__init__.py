"""What is computed from the runs of experiments, a file each: verdicts, games and rankings, scores, the gap between
backends, a document's requirements."""
