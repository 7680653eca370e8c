"""An incident being played: actions, score, episode, and what a language model reads and calls."""
