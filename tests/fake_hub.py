"""The Hugging Face Hub as a folder, for tests: see the fixture `fake_hub`."""

import shutil
from pathlib import Path
from types import SimpleNamespace

from huggingface_hub.errors import RepositoryNotFoundError
from huggingface_hub.utils import filter_repo_objects


class FakeHub:
    """The Hub's API, of which the repositories are folders of `root`; `calls` says what was asked.

    While `down` is an error, that is what reaching it comes to.
    """

    def __init__(self, root):
        self.root, self.calls, self.down, self.public = root, [], None, set()

    def _asked(self, call, name, **details):
        if self.down:
            raise self.down
        self.calls.append((call, name, details))
        return self.root / name

    def create_repo(self, name, *, repo_type="model", private, exist_ok):
        assert exist_ok
        if not private and not (self.root / name).exists():
            self.public.add(name)
        self._asked("create", name, repo_type=repo_type, private=private).mkdir(
            parents=True, exist_ok=True
        )
        return f"https://huggingface.co/{name}"

    def upload_folder(
        self,
        *,
        repo_id,
        folder_path,
        repo_type="model",
        allow_patterns=None,
        ignore_patterns=None,
        delete_patterns,
    ):
        target, source = self._asked("upload", repo_id, repo_type=repo_type), Path(folder_path)
        patterns = {"allow_patterns": allow_patterns, "ignore_patterns": ignore_patterns}
        added = list(filter_repo_objects(self._files(source), **patterns))
        # as the Hub does: what is uploaded is not deleted
        there = [file for file in self._files(target) if file not in added]
        for file in filter_repo_objects(there, allow_patterns=delete_patterns):
            (target / file).unlink()
        for file in added:
            (target / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / file, target / file)

    def repo_info(self, name):
        return SimpleNamespace(private=name not in self.public)

    def list_repo_files(self, name, *, repo_type="model"):
        folder = self._asked("list", name)
        if not folder.exists():
            raise RepositoryNotFoundError.__new__(RepositoryNotFoundError)
        return self._files(folder)

    def snapshot_download(self, name, *, local_dir):
        shutil.copytree(self._asked("download", name), local_dir, dirs_exist_ok=True)
        (local_dir / ".cache").mkdir(exist_ok=True)

    def _files(self, folder):
        return [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
