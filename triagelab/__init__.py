"""The laboratory: language models as policies, training, the reference, evaluation, real clusters.

`logtriage` knows nothing of it, and finds its tasks, policies, models and commands by the entry
points in `pyproject.toml`.
"""
