"""The Hugging Face Hub as a folder, for tests: see the fixture `fake_hub`."""

import shutil
from pathlib import Path

from huggingface_hub.utils import filter_repo_objects


class FakeHub:
    """The Hub's API, of which the repositories are folders of `root`; `private` has the names of
    those that are. While `down` is an error, that is what reaching it comes to.
    """

    def __init__(self, root):
        self.root, self.private, self.down = root, set(), None

    def create_repo(self, name, *, private, exist_ok):
        if self.down:
            raise self.down
        (self.root / name).mkdir(parents=True, exist_ok=exist_ok)
        if private:
            self.private.add(name)
        return f"https://huggingface.co/{name}"

    def upload_folder(self, *, repo_id, folder_path, delete_patterns):
        target = self.root / repo_id
        # as the Hub does: what is uploaded is not deleted
        there = [path.name for path in target.iterdir()]
        for name in filter_repo_objects(there, allow_patterns=delete_patterns):
            (target / name).unlink()
        shutil.copytree(Path(folder_path), target, dirs_exist_ok=True)
