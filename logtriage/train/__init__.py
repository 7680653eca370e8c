"""Training a language model: the embedded base model, GRPO, whole experiments."""
