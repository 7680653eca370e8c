"""`python -m logtriage.train`: the model card behind this project calls `logtriage train` so."""

import sys
from typing import Any

from typer.main import get_group

from . import registry
from .__main__ import CONTEXT, app

if __name__ == "__main__":
    group: Any = get_group(app)
    train = group.get_command(None, "train")
    if train is None:
        sys.exit(f"error: training is not installed; {registry.MORE}")
    train(sys.argv[1:], prog_name="python -m logtriage.train", **CONTEXT)
