"""The example that shows everything on one page: short, of this package alone, and it runs."""

import ast
import re
import runpy
from pathlib import Path

EXAMPLE = Path(__file__).parents[3] / "examples" / "train.py"


def test_it_is_one_page_of_the_small_module_and_libraries_but_for_the_names_that_its_base_knows():
    text = EXAMPLE.read_text()
    assert len(text.splitlines()) <= 80
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    libraries = {node.module.partition(".")[0] for node in imports}
    assert libraries == {"pathlib", "datasets", "transformers", "trl", "logtriage", "triagelab"}
    of_the_lab = [node.module for node in imports if node.module.startswith("triagelab")]
    assert of_the_lab == ["triagelab.language_models.path_names"]


def test_it_trains_and_prints_the_score_before_and_after(tmp_path, monkeypatch, capsys):
    text = EXAMPLE.read_text()
    short = re.sub(r'"single_crash", 20, 4, 8, 120', '"single_crash", 1, 1, 2, 3', text)
    assert short != text
    (tmp_path / "train.py").write_text(short.replace("__file__", repr(str(EXAMPLE))))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["train.py"])
    runpy.run_path(str(tmp_path / "train.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert re.search(r"before: -?\d\.\d{3} \[.*\], n=3\s+after:  -?\d\.\d{3} \[.*\], n=3", printed)
