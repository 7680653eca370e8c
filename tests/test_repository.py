"""What a reader relies on: addresses, notebooks, gallery, words that have no place here."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

import logtriage
from logtriage.repository import ADDRESS, NOTEBOOKS, gallery_text, with_address, with_tables

ROOT = Path(__file__).parents[1]
TEXTS = [
    path
    for pattern in ("*.md", "logtriage/*", "notebooks/*.ipynb", "Makefile", "*.txt", "*.toml", "tests/*.py")
    for path in ROOT.glob(pattern)
    if path.is_file()
]


def test_the_address_stands_in_one_constant():
    for path in TEXTS:
        for found in ADDRESS.finditer(path.read_text()):
            assert found["repository"] == logtriage.REPOSITORY, f"{path}: {found[0]}; run `make address`"


def test_a_new_address_reaches_every_place():
    text = (
        "https://github.com/OWNER/logtriage and https://colab.research.google.com/github/OWNER/logtriage/blob/main/x "
        "and https://github.com/huggingface/trl"
    )
    moved = with_address(text, "OWNER/logtriage", "someone/else")
    assert moved.count("someone/else") == 2 and "OWNER" not in moved and "huggingface/trl" in moved


def test_the_gallery_is_fresh():
    assert (ROOT / "GALLERY.md").read_text() == gallery_text(), "run `make gallery`"


def test_the_tables_are_fresh():
    text = (ROOT / "README.md").read_text()
    assert text == with_tables(text), "run `make tables`"


def test_every_file_of_the_package_is_short_and_documented():
    for path in (ROOT / "logtriage").glob("*.py"):
        source = path.read_text()
        tree = ast.parse(source)
        assert ast.get_docstring(tree), path.name
        assert len(source.splitlines()) <= 370, path.name
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_") and node.col_offset == 0:
                assert ast.get_docstring(node), f"{path.name}: {node.name} has no docstring"


def test_world_telemetry_and_prompts_stay_small():
    rooms = ("topology", "faults", "incidents", "cluster", "telemetry", "wording", "prompts")
    assert sum(len((ROOT / "logtriage" / f"{room}.py").read_text().splitlines()) for room in rooms) <= 1250


def test_imports_point_down():
    order = [
        "topology",
        "faults",
        "cluster",
        "incidents",
        "wording",
        "telemetry",
        "actions",
        "models",
        "rewards",
        "episode",
        "prompts",
        "environment",
        "policies",
        "rollouts",
        "statistics",
        "plots",
        "console",
        "tools",
        "runs",
        "language_models",
        "junior",
        "mini",
        "presets",
        "training",
        "experiment",
        "repository",
        "__main__",
    ]
    for name in order:
        for node in ast.walk(ast.parse((ROOT / "logtriage" / f"{name}.py").read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module:
                assert order.index(node.module) < order.index(name), f"{name} imports {node.module}"


def test_the_world_needs_the_standard_library_only_and_the_environment_no_torch():
    code = (
        "import sys; import logtriage.telemetry; bad = {'pydantic', 'numpy', 'openenv', 'torch'} & set(sys.modules);"
        "assert not bad, bad; import logtriage.environment, logtriage.rollouts; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_nothing_is_evaluated():
    for path in (ROOT / "logtriage").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec", "__import__"), path.name


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_keep_to_the_form(name):
    notebook = nbformat.read(ROOT / "notebooks" / name, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    prose = [cell for cell in notebook.cells if cell.cell_type == "markdown"]
    assert len(notebook.cells) <= 30 and len(prose) >= len(code)
    assert sum(len(cell.source.splitlines()) for cell in code) <= 250
    assert all(len(cell.source.splitlines()) <= 40 for cell in code)
    assert [cell for cell in code if "skip-execution" in cell.metadata.get("tags", ())] == [code[0]]
    assert "parameters" in code[1].metadata.get("tags", ())
    assert "colab-badge" in notebook.cells[0].source and "Run time" in notebook.cells[0].source
    assert any('environment_record()["versions"]' in cell.source for cell in code[:3])  # versions stand in the opening
    assert "T4" in notebook.cells[0].source
    for cell in code[2:]:  # a loop with a branch belongs in the package
        loops = [node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, (ast.For, ast.While))]
        assert not any(isinstance(inner, ast.If) for loop in loops for inner in ast.walk(loop))
        assert not any(isinstance(node, ast.FunctionDef) for node in ast.walk(ast.parse(cell.source)))
    assert "widgets" not in notebook.metadata  # a widget without state shows an error
    assert len((ROOT / "notebooks" / name).read_bytes()) < 500_000
    for cell in code:
        for output in cell.get("outputs", ()):
            assert output.output_type != "error"
            assert not re.search(r"/(root|home|work|tmp|opt)/", str(output.get("text", ""))), "a path of somebody's machine"
