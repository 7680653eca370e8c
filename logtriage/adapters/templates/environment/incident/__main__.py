"""What `python3 -I` runs when it is given this folder: see `logtriage.play.shell`."""

from pathlib import Path

from logtriage.play.shell import main

main(Path(__file__).with_name("coordinates.json"))
