"""`python -m logtriage.train ...`: the command as the card that this project starts from writes it;
`python -m logtriage train` under another name.
"""

import sys

from ..__main__ import app

if __name__ == "__main__":
    app(["train", *sys.argv[1:]], prog_name="python -m logtriage.train")
