"""Rehearse on a CPU what Colab does when README's first badge is clicked: `make colab`.

A fresh environment gets Colab's versions, the notebook's first cell installs the last commit as it
does on Colab, and then all cells run, with the few steps of the tests. What the cell changed of
Colab's packages is printed. It may not touch those that Colab built for each other.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "colab"
PYTHON = WORK / "venv" / "bin" / "python"
# Colab's release of August 2026, as far as the project meets it; there torch is a build for CUDA.
COLABS_OWN = ("torch==2.11.0", "pandas==2.2.3", "numpy==2.2.6", "ipywidgets==7.7.1")
COLABS = ("transformers==5.15.0", "datasets==4.0.0", "peft==0.20.0", "pyarrow==18.1.0")
SHORT = ("-p", "profile", "cpu", "-p", "steps", "2", "-p", "incidents", "2")  # as the tests have it


def run(*words: object, **environment: str) -> str:
    """Run a command in the fresh environment, and return what it prints."""
    print("$", *words, flush=True)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    kept |= {"PATH": f"{PYTHON.parent}{os.pathsep}{os.environ['PATH']}", **environment}
    command = [str(word) for word in words]
    return subprocess.run(command, env=kept, check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> None:
    """Install, run the first cell, run the notebook."""
    assert sys.version_info[:2] == (3, 13), f"Colab has Python 3.13, this is {sys.version}"
    badge = re.search(r"/blob/main/notebooks/(\S+)\)", (ROOT / "README.md").read_text())
    assert badge
    cells = json.loads((ROOT / "notebooks" / badge[1]).read_text())["cells"]
    cell = "".join(next(cell for cell in cells if cell["cell_type"] == "code")["source"])
    shutil.rmtree(WORK, ignore_errors=True)
    run(sys.executable, "-m", "venv", WORK / "venv")
    # Of whatever else we need, and the cell does not bring, Colab has some version.
    own, pinned = [{pin.split("==")[0] for pin in pins} for pins in (COLABS_OWN, COLABS)]
    names = re.findall(r"^\w+", (ROOT / "requirements.txt").read_text(), re.M)
    others = [name for name in names if name not in own | pinned and f'"{name}' not in cell]
    run("pip", "install", "-q", "--no-compile", *COLABS_OWN, *COLABS, *others)
    before = run("pip", "freeze").splitlines()
    cell = re.sub('REPOSITORY = ".*?"', f'REPOSITORY = "file://{ROOT}"', cell)
    (WORK / "cell.ipy").write_text(cell.replace("/content/", f"{WORK}/"))
    print(run("ipython", "--no-banner", WORK / "cell.ipy", COLAB_RELEASE_TAG=""))
    lost = set(before) - set(run("pip", "freeze").splitlines())
    print("the cell replaced:", *sorted(lost))
    assert not [pin for pin in lost if pin.split("==")[0] in own]
    notebooks = WORK / "logtriage" / "notebooks"
    run("papermill", "--cwd", notebooks, notebooks / badge[1], WORK / badge[1], *SHORT)


if __name__ == "__main__":
    main()
