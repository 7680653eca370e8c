"""Documents that are true: every code block runs, links lead somewhere, versions agree, pictures
are fresh; and the checks of a commit find a planted mistake.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from textwrap import dedent

import nbformat
import pytest
import typer
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from pictures import PICTURES
from typer.testing import CliRunner

import logtriage
from logtriage.__main__ import app
from logtriage.world.faults import FAULTS
from logtriage.world.tasks import BENCHMARK_VERSION

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    "README.md",
    "CONTRIBUTING.md",
    "logtriage/README.md",
    *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")),
]
LOCAL = "http://127.0.0.1:8000"  # where documents say that a server listens
# Programs that a block may name and a test cannot run: they need the network, a login or a model.
ONLY_READ = ("git", "pip", ".", "cd", "openenv", "env", "server", "dask")
# Of the command line, what trains, waits or needs a model or a file: its options are read, it
# is not run.
LONG = (
    *("train", "build-base", "benchmark", "serve"),
    *("publish-model", "publish-dataset", "evaluate-run", "sweep", "sweep-status", "replay"),
)
MODELS = ("--model", "--endpoint")


def blocks(document):
    """(language, code) of each fenced block, those in lists too."""
    found = re.findall(r"^( *)```(\w+)\n(.*?)^ *```$", (ROOT / document).read_text(), re.S | re.M)
    return [(language, dedent(code)) for _, language, code in found]


def commands(code):
    """The commands of a shell block as lists of words, without comments."""
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        while words:
            end = words.index("&&") if "&&" in words else len(words)
            yield words[:end]
            words = words[end + 1 :]


def check_options(words):
    """Fail when the command line would not take these words. Nothing is run."""
    group = typer.main.get_command(app)
    context = group.make_context("logtriage", list(words))
    name, command, rest = group.resolve_command(context, list(words))
    command.make_context(name, rest, parent=context)


def check_command(words, url):
    """Run a command of a document in the current folder, or as much of it as can be run here."""
    if words[:3] == ["python", "-m", "logtriage.train"]:  # the same under another name
        words = ["python", "-m", "logtriage", "train", *words[3:]]
    if words[:3] == ["python", "-m", "logtriage"]:
        words = [word.replace(LOCAL, url) for word in words[3:]]
        check_options(words)
        absent = words[0] == "triage" and not Path(words[1]).exists()  # a log of the reader's
        if words[0] not in LONG and not set(MODELS) & set(words) and not absent:
            short = ["--episodes", "2"] if words[0] == "evaluate" else []
            done = CliRunner().invoke(app, [*words, *short])
            assert done.exit_code == 0, f"{shlex.join(words)}: {done.output}"
    elif words[0] == "make":
        targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
        named = [word for word in words[1:] if "=" not in word]
        assert set(named) <= targets, f"no target in {named}"
    elif words[0] in ("python", ".venv/bin/python", ".venv/bin/pytest", ".venv/bin/pre-commit"):
        files = [word for word in words[1:] if "/" in word]
        assert all((ROOT / file).exists() for file in files), files
    else:
        assert words[0] in ONLY_READ, f"a test should know what {shlex.join(words)} does"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_code_block_runs(document, url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for language, code in blocks(document):
        if language == "python":
            source = compile(code.replace(LOCAL, url), document, "exec")
            exec(source, {"__name__": "__main__"})
        elif language == "py":  # of packages that are not among the requirements
            compile(code, document, "exec")
        elif language == "bash":
            for words in commands(code):
                check_command(words, url)
        elif language == "yaml":  # a file that later blocks read, named in its first line
            yaml.safe_load(code)
            Path(code.splitlines()[0].removeprefix("# ")).write_text(code)
        else:
            assert language in ("text", "diff"), language


def test_a_block_that_does_not_run_is_found(url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for wrong in ("make dinner", "curl -X POST", "python tests/gone.py"):
        with pytest.raises(AssertionError):
            check_command(shlex.split(wrong), url)
    with pytest.raises(Exception, match="polcy"):
        check_command(shlex.split("python -m logtriage evaluate --polcy trace"), url)
    with pytest.raises(AssertionError, match="unknown policy 'tarce'"):
        check_command(shlex.split("python -m logtriage evaluate --policy tarce"), url)


@pytest.mark.parametrize("document", [*DOCUMENTS, "CHANGELOG.md", "LOG.md", "results/README.md"])
def test_links_lead_to_files(document):
    at = (ROOT / document).parent
    for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / document).read_text()):
        assert (at / target).exists(), f"{document} links to {target}"


def test_the_readme_comes_to_the_point():
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 150
    assert "<!-- /demo -->" in lines[:60]


@pytest.mark.parametrize("path", PICTURES)
def test_the_pictures_are_fresh(path):
    assert (ROOT / path).read_text() == PICTURES[path](), "run `make pictures`"


def test_the_architecture_shows_every_module():
    picture = (ROOT / "docs" / "architecture.svg").read_text()
    for path in (ROOT / "logtriage").rglob("*.py"):
        if path.stem != "__init__" and "build" not in path.parts:
            assert path.stem in picture, path


# -- versions -----------------------------------------------------------------------------------


def requirements(text):
    """The requirements in the text of a requirements file, by name."""
    lines = (line.split("#")[0].strip() for line in text.splitlines())
    found = (Requirement(line) for line in lines if line)
    return {canonicalize_name(need.name): need for need in found}


def sources():
    """Everything that asks for a version: file to requirements by name."""
    files = {
        path.name: requirements(path.read_text()) for path in sorted(ROOT.glob("requirements*.txt"))
    }
    project = tomllib.loads((ROOT / "logtriage" / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    needs = [*project["dependencies"], *(need for extra in extras for need in extra)]
    files["pyproject.toml"] = requirements("\n".join(needs))
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = nbformat.read(path, as_version=4).cells
        installs = re.findall(r"%pip install (.*)", "\n".join(cell.source for cell in cells))
        words = [word for line in installs for word in shlex.split(line)]
        needs = [word for word in words if not word.startswith(("-", "/"))]
        files[path.name] = requirements("\n".join(needs))
    return files


def disagreements(files, pins):
    """Sources that ask for different versions of a thing, and pins that a source refuses."""
    found, asked = [], {}
    for file, needs in files.items():
        for name, need in needs.items():
            version = next((s.version for s in pins[name].specifier), "") if name in pins else ""
            if name in pins and version not in need.specifier:
                found.append(f"{file} asks for {need}, constraints.txt pins {version}")
            if need.specifier:
                asked.setdefault(name, {}).setdefault(str(need.specifier), file)
    for name, by_version in asked.items():
        exact = [version for version in by_version if version.startswith("==")]
        if len(exact) > 1:
            found.append(f"{name}: {by_version}")
    return found


def test_versions_agree_everywhere():
    files, pins = sources(), requirements((ROOT / "constraints.txt").read_text())
    assert not disagreements(files, pins)
    for file in ("requirements.txt", "requirements-dev.txt"):
        assert not set(files[file]) - set(pins), "run `make constraints`"
    listed = {
        name: need for file in files if "requirements" in file for name, need in files[file].items()
    }
    for file, needs in files.items():
        if file.endswith(".ipynb"):  # Colab asks for just what the project asks for
            for name, need in needs.items():
                assert str(listed[name].specifier) == str(need.specifier), f"{file}: {need}"


def test_versions_that_disagree_are_found():
    files = {"a": requirements("trl==1.14.2\npeft"), "b": requirements("trl==1.15.0")}
    pins = requirements("trl==1.14.2\npeft==0.21.2")
    assert len(disagreements(files, pins)) == 2  # b against the pin, and b against a


def test_texts_name_the_versions():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == logtriage.__version__
    assert citation["repository-code"] == f"https://github.com/{logtriage.REPOSITORY}"
    heads = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    # The first head is of what is in the tree, which may be ahead of the last release.
    assert heads[0].startswith("Unreleased") and f"benchmark {BENCHMARK_VERSION}" in heads[0]
    assert any(head.startswith(logtriage.__version__) for head in heads)
    rules = (ROOT / "docs" / "benchmark.md").read_text()
    assert f"Version {BENCHMARK_VERSION} " in rules
    assert f"{len(FAULTS)} kinds of faults" in (ROOT / "README.md").read_text()


# -- the checks of a commit ---------------------------------------------------------------------

# File to what a mistake makes of its text, and the hook that must find it.
MISTAKES = {
    "ruff check": ("scripts/pictures.py", lambda text: text + "import os\n"),
    "ruff format": ("scripts/pictures.py", lambda text: text + "x  =  1\n"),
    "GitHub workflows": (
        ".github/workflows/ci.yml",
        lambda text: text.replace("runs-on:", "runs-in:"),
    ),
    "CITATION.cff": ("CITATION.cff", lambda text: text.replace("authors:", "writers:")),
    "one line break ends a file": ("LICENSE", lambda text: text.rstrip()),
    "no file above 500 kB": ("docs/large.txt", lambda text: "much\n" * 110_000),
    "no conflict left in": ("LOG.md", lambda text: f"<<<<<<< HEAD\n{text}"),
    "YAML can be read": ("logtriage/openenv.yaml", lambda text: text + "a: [\n"),
    "TOML can be read": ("logtriage/pyproject.toml", lambda text: text + "[tool\n"),
}


@pytest.fixture
def scratch(tmp_path):
    """A git repository with the checks, and the files in which mistakes are planted."""
    settings = (".pre-commit-config.yaml", "pyproject.toml")
    for name in (*settings, *(file for file, _ in MISTAKES.values())):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).exists():
            shutil.copyfile(ROOT / name, tmp_path / name)
    (tmp_path / ".venv").symlink_to(sys.prefix)
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    (tmp_path / ".git" / "info" / "exclude").write_text(".venv\n")
    return tmp_path


def pre_commit(folder):
    """Run the hooks on everything staged in `folder`: name to Passed or Failed. The two that need
    the whole package are left out.
    """
    subprocess.run(["git", "add", "--all"], cwd=folder, check=True)
    env = {**os.environ, "SKIP": "contracts,types", "PRE_COMMIT_HOME": str(folder / ".git" / "pre")}
    run = subprocess.run(
        [sys.executable, "-m", "pre_commit", "run", "--color", "never"],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
    )
    print(run.stdout, run.stderr)
    return dict(re.findall(r"^(.+?)\.{3,}.*?(Passed|Failed)$", run.stdout, re.M))


def test_a_commit_is_checked(scratch):
    results = pre_commit(scratch)
    assert set(results.values()) == {"Passed"} and set(results) == set(MISTAKES), results
    for name, mistake in MISTAKES.values():
        path = scratch / name
        path.write_text(mistake(path.read_text() if path.exists() else ""))
    assert set(pre_commit(scratch).values()) == {"Failed"}


ACTIONLINT = shutil.which("actionlint", path=f"{sys.prefix}/bin:{os.environ['PATH']}")


@pytest.mark.skipif(not ACTIONLINT, reason="actionlint is not installed")
def test_actionlint_finds_a_mistake_that_the_schema_allows(tmp_path):
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    path = tmp_path / "ci.yml"
    for mistake, code in ((text, 0), (text.replace("matrix.python", "matrix.snake"), 1)):
        path.write_text(mistake)
        assert subprocess.run([ACTIONLINT, path]).returncode == code


FAULTS_PY = "logtriage/world/faults.py"


@pytest.mark.parametrize(
    "check, mistake, told",
    [
        (["lint-imports"], "from ..play import actions\n", "Imports point down BROKEN"),
        # what faults.py imports is left out: its package's __init__ leads to everything
        (
            ["mypy", "--follow-imports=skip", FAULTS_PY],
            'REMEDIES.append("pray")\n',
            "[attr-defined]",
        ),
    ],
)
def test_contracts_and_types_find_a_mistake(check, mistake, told, tmp_path):
    shutil.copytree(ROOT / "logtriage", tmp_path / "logtriage")
    shutil.copyfile(ROOT / "pyproject.toml", tmp_path / "pyproject.toml")
    command = [f"{sys.prefix}/bin/{check[0]}", *check[1:]]
    for text, code in (("", 0), (mistake, 1)):
        with (tmp_path / FAULTS_PY).open("a") as file:
            file.write(text)
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert run.returncode == code, run.stdout + run.stderr
    assert told in run.stdout
