"""What policies are worth: rollouts, intervals, figures, the benchmark."""
