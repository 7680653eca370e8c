"""LogTriage: incidents in a microservice cluster, for language models to trace to their root.

The world needs nothing but the standard library; the environment needs OpenEnv; only training needs torch.
"""

REPOSITORY = "OWNER/logtriage"  # the public address; README and notebooks are written from it by `make address`
__version__ = "0.1.0"
