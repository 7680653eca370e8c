"""What a reader relies on: addresses, notebooks, published runs and numbers."""

import ast
import json
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
from itertools import product
from pathlib import Path

import nbformat
import pandas as pd
import pytest
import yaml
from IPython.core.inputtransformer2 import TransformerManager

import logtriage
from logtriage import client
from logtriage.environment import TriageEnvironment
from logtriage.play.episode import Episode
from logtriage.play.observation import render
from logtriage.world.tasks import BENCHMARK_VERSION, SPLITS, TASKS
from triagelab.bench import published
from triagelab.bench.published import LIGHT_FILES
from triagelab.bench.results_pages import PAGES, written

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))
# This project's own links: whatever owner, the name is `logtriage`.
ADDRESS = re.compile(
    r"(?:github\.com|com/github)/(?P<repository>[\w.-]+/logtriage)(?=[/\s\")#.]|$)", re.MULTILINE
)
PACKAGES = ("logtriage", "triagelab", "logreader")
SUFFIXES = {".md", ".py", ".ipynb", ".toml", ".txt", ".yaml", ".yml"}
TEXTS = [
    path
    for folder in (".", "docs", "examples", *PACKAGES, "notebooks", "tests")
    for path in (ROOT / folder).glob("*" if folder in (".", "docs") else "**/*")
    if path.suffix in SUFFIXES or path.name == "Makefile"
]


def test_the_address_stands_in_one_constant():
    for path in TEXTS:
        for address in ADDRESS.finditer(path.read_text()):
            assert address["repository"] == logtriage.REPOSITORY, f"{path}: {address[0]}"


def test_one_command_writes_the_owner_into_every_address(tmp_path):
    def command(*words):
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    before = logtriage.REPOSITORY.split("/")[0] + "/"
    listed = ["git", "grep", "-lI", before]
    listed = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in {*listed.splitlines(), "Makefile"}:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    command("git", "init", "-q")
    command("git", "add", "--all", "--force")
    for wrong in ("", "NAME=a/b", "NAME=a b", "NAME=-a"):
        status, said = command("make", "owner", *filter(None, [wrong]))
        assert status and "make owner NAME=you" in said
    assert command("git", "diff", "--quiet")[0] == 0
    for name in ("some-body", "another"):  # and again, for a fork of a fork
        assert command("make", "owner", f"NAME={name}")[0] == 0
    assert command("git", "grep", "-n", before) == (1, "")
    address = logtriage.REPOSITORY.replace(before, "another/")
    badge = f"https://colab.research.google.com/github/{address}/blob/main/"

    for path in sorted((tmp_path / "notebooks").glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        assert f"({badge}notebooks/{path.name})" in notebook.cells[0].source
        (cell,) = (c for c in notebook.cells if "skip-execution" in c.metadata.get("tags", ()))
        assert f'REPOSITORY = "https://github.com/{address}"' in cell.source
        ast.parse(TransformerManager().transform_cell(cell.source))
    led = re.findall(rf"\({badge}(\S+)\)", (tmp_path / "README.md").read_text())
    assert led and all((tmp_path / name).is_file() for name in led)
    citation = yaml.safe_load((tmp_path / "CITATION.cff").read_text())
    assert citation["repository-code"] == f"https://github.com/{address}"


def test_colab_opens_on_minutes_of_training_without_a_question():
    """The first badge of README leads to a notebook that trains the embedded model, wherever it
    runs; the notebook that needs a T4 shows nothing that was made without one.
    """
    badges = re.findall(r"/blob/main/(notebooks/\S+)\)", (ROOT / "README.md").read_text())
    first, t4 = [nbformat.read(ROOT / name, as_version=4) for name in badges]
    install, parameters = [cell.source for cell in first.cells if cell.cell_type == "code"][:2]
    assert 'profile: str = "cpu"' in parameters and "accelerator" not in first.metadata
    assert "USE_DRIVE = False" in install
    assert install.index("if USE_DRIVE:") < install.index("drive.mount")
    assert t4.metadata["colab"]["gpuType"] == "T4"
    assert not [cell for cell in t4.cells if cell.get("outputs")]


def finished_run(folder):
    """A run's folder with something in every file that is published, and in some that are not."""
    folder.mkdir(parents=True)
    for name in LIGHT_FILES:
        (folder / name).write_bytes(name.encode() + b"\x00\xff")
    (folder / "completions.jsonl").write_text("{}\n")
    episodes = [{"step": 1, "task": "single_crash", "score": 0.1 + 0.2}, {"step": 2, "score": 1}]
    (folder / "episodes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in episodes))
    (folder.parent / "base").mkdir()
    (folder.parent / "base" / "base.json").write_text("{}")
    (folder / "model").mkdir()
    return folder


def test_publish_copies_the_light_files(tmp_path):
    run, folder = finished_run(tmp_path / "runs" / "seed-0"), tmp_path / "results"
    published.publish_run(run, folder)
    target = folder / "seed-0"
    assert {path.name for path in target.iterdir()} == {*LIGHT_FILES, "episodes.parquet"}
    assert (target.parent / "base.json").read_text() == "{}"
    for name in LIGHT_FILES:
        assert (target / name).read_bytes() == (run / name).read_bytes()

    episodes = pd.read_parquet(target / "episodes.parquet")
    assert list(episodes["score"]) == [0.1 + 0.2, 1.0] and list(episodes["step"]) == [1, 2]

    (run / "summary.json").write_text("newer")
    published.publish_run(run, folder)
    assert (target / "summary.json").read_text() == "newer"

    (run / "episodes.jsonl").unlink()
    with pytest.raises(FileNotFoundError, match=r"lacks episodes\.jsonl; run `make seeds`"):
        published.publish_run(run, tmp_path / "others")
    assert not (tmp_path / "others").exists()


def test_without_runs_or_with_unfinished_ones_nothing_is_touched(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(published, "RESULTS", tmp_path / "results")
    monkeypatch.chdir(tmp_path)
    published.collect(Path("runs"))
    assert "what is published stays" in capsys.readouterr().out
    (finished_run(tmp_path / "runs" / "novice" / "seed-0") / "model").rmdir()
    with pytest.raises(SystemExit, match=r"error: .*seed-0 lacks model; run `make seeds`"):
        published.collect(Path("runs"))
    assert not (tmp_path / "results").exists()


def test_a_published_seed_stays_and_takes_no_other_recipe_beside_it(tmp_path, monkeypatch):
    # After `make demo` there is one seed of five, from the base in the package.
    def record(run, **changes):
        settings = {"seed": run.name, "steps": 30, "weights": "abc", **changes}
        (run / "config.json").write_text(json.dumps({"settings": settings}))

    monkeypatch.setattr(published, "RESULTS", tmp_path / "results")
    for name in ("evaluate_splits", "evaluate_checkpoints", "audit_run", "ship"):
        monkeypatch.setattr(published, name, lambda run: None)
    first, second, third = (published.RESULTS / "novice" / f"seed-{seed}" for seed in (1, 2, 3))
    for folder in (first, second, third):
        folder.mkdir(parents=True)
    (first.parent / "base.json").write_text("published")
    run = finished_run(tmp_path / "runs" / "novice" / "seed-1")
    shutil.rmtree(run.parent / "base")
    record(run)
    record(second)
    for name, value in (("steps", 90), ("weights", "another base")):
        record(third, **{name: value})
        with pytest.raises(SystemExit, match=f"seed-3 and .*seed-1 differ in {name}"):
            published.collect(tmp_path / "runs")
    assert not (first / "config.json").exists()
    record(third)
    published.collect(tmp_path / "runs")
    assert (first / "config.json").exists() and (third / "config.json").exists()
    assert (first.parent / "base.json").read_text() == "published"


def test_no_tracked_file_is_large_or_ignored():
    def listed(*options):
        command = ["git", "ls-files", *options]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    assert listed("--ignored", "--cached", "--exclude-standard") == []
    sizes = {name: (ROOT / name).stat().st_size for name in listed()}
    large = {name for name, size in sizes.items() if size > 500_000}
    agents = {f"triagelab/agent/{name}/model.safetensors" for name in ("base", "trained")}
    adapters = {name for name in sizes if re.fullmatch(r"results/smollm2/.*/adapter_model.*", name)}
    assert large == agents | adapters | {"triagelab/realistic/ranker.npz"}
    assert all(sizes[name] < 10e6 for name in adapters)


def test_few_names_stand_for_anything():
    blocks = re.findall(r"```py\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)
    (code,) = (block for block in blocks if "vague" in block)
    command = [sys.executable, "-c", textwrap.dedent(code)]
    counted = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(counted.stdout) <= 10


def test_the_gallery_shows_what_is_drawn():
    text = (ROOT / "docs" / "GALLERY.md").read_text()
    for task, index in product(TASKS, (0, 1)):
        episode = Episode.open(task, "train", index)
        assert render(episode.opening, episode.incident.topology) in text
    for split in (split for split in SPLITS if split.startswith("unseen")):
        lines = Episode.open("cascading_failure", split, 0).opening.lines
        assert "\n".join(lines) in text


def test_all_numbers_are_fresh():
    for file in PAGES:
        text = (ROOT / file).read_text()
        assert text == written(file, text), f"{file} is not of results/: run `make results`"


def test_the_manifest_tells_what_the_environment_does():
    manifest = yaml.safe_load((ROOT / "logtriage" / "openenv.yaml").read_text())
    env = TriageEnvironment()
    assert manifest["name"] == env.get_metadata().name
    assert manifest["version"] == logtriage.__version__
    listed = [(task["id"], task["max_steps"]) for task in manifest["tasks"]]
    assert listed == [(task.name, task.max_steps) for task in TASKS.values()]
    declared = manifest["validation"]["capabilities"]["declared_task_count"]
    assert declared == {split["name"]: env.num_tasks(split["name"]) for split in env.list_splits()}
    assert manifest["validation"]["task_distribution"]["dataset_version"] == BENCHMARK_VERSION
    for name in ("action", "observation"):
        assert manifest[name] in vars(client)
    module, _, attribute = manifest["app"].partition(":")
    assert (ROOT / (module.replace(".", "/") + ".py")).is_file() and attribute == "app"


def test_the_image_runs_as_nobody_and_listens_where_the_manifest_says():
    lines = (ROOT / "logtriage" / "server" / "Dockerfile").read_text().splitlines()
    said = dict(line.split(maxsplit=1) for line in lines if line.startswith(("USER", "CMD")))
    assert int(said["USER"].partition(":")[0]) > 0
    command = json.loads(said["CMD"])
    project = tomllib.loads((ROOT / "logtriage" / "pyproject.toml").read_text())["project"]
    assert command[0] in project["scripts"] and "EXPOSE 8000" in lines
    assert command[command.index("--port") + 1] == "8000"


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_keep_to_the_form(name):
    notebook = nbformat.read(ROOT / "notebooks" / name, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(notebook.cells) <= 30
    assert sum(len(cell.source.splitlines()) for cell in code) <= 250
    prose = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    assert sum(len(text.split()) for text in prose) <= 600
    assert [cell for cell in code if "skip-execution" in cell.metadata.get("tags", ())] == [code[0]]
    assert code[0].source.startswith("# @title ") and code[0].metadata["cellView"] == "form"
    assert code[0].metadata["jupyter"] == {"source_hidden": True}  # folded, on Colab and elsewhere
    assert "parameters" in code[1].metadata.get("tags", ())
    assert "colab-badge" in notebook.cells[0].source and "Run time" in notebook.cells[0].source
    assert "widgets" not in notebook.metadata  # a widget without state shows an error
    for output in (output for cell in code for output in cell.get("outputs", ())):
        assert output.output_type != "error" and "widget-view" not in str(output)
        assert not re.search(r"/(root|home|work|tmp|opt)/", str(output.get("text", "")))
