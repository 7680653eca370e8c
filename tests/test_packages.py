"""Three packages, one of which knows nothing of the others: what each ships, and how they meet."""

import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import distribution, entry_points
from pathlib import Path
from zipfile import ZipFile

import pytest
from joblib import Parallel, delayed

from logtriage import catalogue, registry
from triagelab.bench import registry as players
from triagelab.realistic.production_episode import ProductionEpisode

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "logtriage": "openenv-logtriage",
    "triagelab": "logtriage-lab",
    "logreader": "logtriage-reader",
}
GROUPS = (registry.TASKS, registry.POLICIES, registry.MODELS, registry.COMMANDS, registry.JOURNALS)
# Hides the other two packages as if they were not installed, though they can be imported: only
# installed metadata may tell of them.
ALONE = """
import importlib.metadata as metadata
everything, hidden = metadata.entry_points, ("logtriage-lab", "logtriage-reader")
metadata.entry_points = lambda group: metadata.EntryPoints(
    point for point in everything(group=group) if point.dist.name not in hidden
)
"""


def python(code, folder):
    """What a Python in a process of its own prints, with that working directory."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_small_module_names_the_others_in_one_message_only():
    lines = [
        (path.name, line)
        for path in (ROOT / "logtriage").rglob("*.py")
        if "build" not in path.parts
        for line in path.read_text().splitlines()
        if re.search("triagelab|logreader", line)
    ]
    assert [name for name, _ in lines] == ["registry.py", "registry.py"]
    assert all(re.search(r"#subdirectory=\w+", line)[0] in registry.MORE for _, line in lines)


@pytest.mark.parametrize("package", PACKAGES)
def test_versions_agree_and_every_file_is_packaged(package):
    folder = ROOT / package
    settings = tomllib.loads((folder / "pyproject.toml").read_text())
    assert settings["project"]["name"] == PACKAGES[package]
    assert settings["project"]["version"] == distribution("openenv-logtriage").version
    tools = settings["tool"]["setuptools"]
    packaged = {folder / "pyproject.toml"}
    for name in tools["packages"]:
        at = ROOT / name.replace(".", "/")
        packaged |= {*at.glob("*.py")}
        for pattern in tools["package-data"].get(name, ()):
            packaged |= {*at.glob(pattern)}
    present = {path for path in folder.rglob("*") if path.is_file()}
    made = re.compile("__pycache__|/build/|egg-info")
    assert {path for path in present if not made.search(str(path))} == packaged


def test_the_wheel_of_the_small_module_is_small_and_has_nothing_else(tmp_path):
    folder = shutil.copytree(
        ROOT / "logtriage", tmp_path / "logtriage", ignore=shutil.ignore_patterns("build")
    )
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, folder], cwd=tmp_path, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.stat().st_size <= 700_000
    names = [name for name in ZipFile(wheel).namelist() if ".dist-info/" not in name]
    pinned = (Path(__file__).parent / "wheel.txt").read_text().splitlines()
    assert sorted(names) == pinned, "a file came or went: write the new list to tests/wheel.txt"


def test_every_entry_point_can_be_loaded():
    for group in GROUPS:
        points = entry_points(group=group)
        assert {*registry.names(group)} == {point.name for point in points} and points
        for point in points:
            registry.load(group, point.name)
    (inspect,) = entry_points(group="inspect_ai", name="logtriage")
    assert inspect.load().triage


def test_a_command_that_is_not_installed_says_how_it_would_be(tmp_path):
    code = f"{ALONE}\nfrom logtriage.__main__ import app\napp(['triage'])"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    words = re.sub(r"[\s│]+", " ", done.stderr)
    assert done.returncode == 2 and "'triage' is no command that is installed" in words
    assert "pip install" in words


PLAYED = """
import sys
from logtriage.environment import TriageEnvironment
environment = TriageEnvironment()
environment.reset(task="cascading_failure", split="test", index=7)
modules = sorted(sys.modules)
tasks = [environment.get_task("test", number) for number in range(31)]
counts = [environment.num_tasks(split["name"]) for split in environment.list_splits()]
print(modules, tasks, counts)
"""
REFUSED = """
import triagelab
try:
    environment.reset(task="real")
except ValueError as error:
    print(error)
"""


def test_the_three_tasks_load_and_count_the_same_with_and_without_the_others(tmp_path):
    (tmp_path / "triagelab").mkdir()  # a folder of that name adds nothing
    with_others, alone = python(PLAYED, tmp_path), python(ALONE + PLAYED + REFUSED, tmp_path)
    loaded, refused = alone.splitlines()
    assert [loaded] == with_others.splitlines() and "[3000, 3000, 3000, 3000, 3000]" in loaded
    assert not re.search("'(triagelab|logreader|torch|numpy|pandas)", loaded)
    assert refused.startswith("unknown task 'real'; choose one of single_crash, cascading_failure,")
    assert 'pip install "git+https://github.com/' in refused
    assert "#subdirectory=triagelab" in refused


def test_tasks_of_the_laboratory_are_found_in_processes_of_their_own():
    # Workers are started afresh, and know only what is installed.
    def opening(index):
        return catalogue.open_incident("production", "test", index).opening

    openings = Parallel(n_jobs=2)(delayed(opening)(index) for index in range(2))
    assert openings == [ProductionEpisode.open("test", index).opening for index in range(2)]


def test_the_digest_of_a_script_changes_with_the_code_that_decides_it(tmp_path, monkeypatch):
    copies = []
    for folder in players.DECIDES:
        copies.append(shutil.copytree(folder, tmp_path / folder.parent.name / folder.name))
    monkeypatch.setattr(players, "DECIDES", tuple(copies))
    of_code = players.code_digest.__wrapped__
    assert of_code() == players.code_digest()
    faults = tmp_path / "logtriage" / "world" / "faults.py"
    faults.write_text(faults.read_text().replace("errors=0.6", "errors=0.7", 1))
    assert of_code() != players.code_digest()
