"""Training a language model: the embedded base model, GRPO, whole experiments."""

import os

# Before torch is imported: its threads sleep while they wait. By default they spin, which takes the
# cores from other processes that train: two of two threads each on two cores took twice the time.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("KMP_BLOCKTIME", "0")
