"""What `python3 -I` runs when it is given this folder: see `shell.py`."""

import sys
from pathlib import Path

from shell import main

sys.tracebacklimit = 0  # a traceback of an interrupted call would tell of the incident
main(Path(__file__).with_name("coordinates.json"))
