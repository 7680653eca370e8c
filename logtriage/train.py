"""`python -m logtriage.train ...` does the same as `python -m logtriage train`. It is the name used
in the model card behind this project.
"""

import sys

from typer.main import get_group

from .__main__ import app

if __name__ == "__main__":
    get_group(app).commands["train"](sys.argv[1:], prog_name="python -m logtriage.train")
