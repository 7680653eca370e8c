"""Fixtures of the tests of the small module, which run without the rest of the repository, too:
`make test-core`.
"""

from helpers import open_tab, url  # noqa: F401 (fixtures)
