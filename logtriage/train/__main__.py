"""`python -m logtriage.train ...`: `python -m logtriage train` under the name that the model card
behind this project uses.
"""

import sys

from typer.main import get_group

from ..__main__ import app

if __name__ == "__main__":
    get_group(app).commands["train"](sys.argv[1:], prog_name="python -m logtriage.train")
