"""A notebook that does in a second what training does in minutes: steps that are kept, to continue
from.
"""

import nbformat
from nbformat.v4 import new_code_cell, new_notebook

PARAMETERS = """\
folder: str = ""
seed: int = 0
size: int = 1
pause: float = 0.0
fails: bool = False
profile: str = "cpu"
steps: int = 0
changes: dict = {}
"""
WORK = """\
import json, os, time
from pathlib import Path

run = Path(folder) / f"seed-{seed}"
file = run / "steps.jsonl"
done = len(file.read_text().splitlines()) if file.exists() else 0
for step in range(done, 5):
    time.sleep(pause)
    row = {"step": step, "worker": os.getppid(), "threads": os.environ["OMP_NUM_THREADS"]}
    with file.open("a") as out:
        out.write(json.dumps(row) + "\\n")
assert not fails, "as it was asked to"
"""


def write_toy(path):
    """Write the notebook there."""
    notebook = new_notebook(
        cells=[
            new_code_cell(PARAMETERS, metadata={"tags": ["parameters"]}),
            new_code_cell("%%never a line of this\n", metadata={"tags": ["skip-execution"]}),
            new_code_cell(WORK),
        ],
        metadata={
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}
        },
    )
    nbformat.write(notebook, path)
