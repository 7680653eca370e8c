"""Evaluation of policies: rollouts, intervals, figures and the benchmark."""
