"""Training a language model: the embedded base model, GRPO, whole experiments."""

import os

# Set before torch is imported, so that its threads sleep while they wait. By default they spin, and
# slow other training down: two processes of two threads each, on two cores, took twice as long.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("KMP_BLOCKTIME", "0")
