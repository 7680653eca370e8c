"""Schemathesis against the document that the server publishes of itself: what it promises holds,
whatever is sent.
"""

import pytest
import requests
import schemathesis
from conftest import serving
from schemathesis.config import SchemathesisConfig

from logtriage.server.app import make_app

CONFIG = {
    "seed": 0,
    "request-timeout": 5.0,  # seconds; a request that hangs fails
    "generation": {"max-examples": 100, "database": "none"},
    "checks": {
        # Pydantic, as OpenEnv has it, takes `false` for 0 and "7" for 7, and JSON-RPC refuses in an
        # answer of status 200.
        "negative_data_rejection": {"enabled": False}
    },
}
DOCUMENT = (
    make_app().openapi()
)  # made here: `from_fixture` of Schemathesis 4.32 fails under pytest 9.2

routes = schemathesis.openapi.from_dict(DOCUMENT, config=SchemathesisConfig.from_dict(CONFIG))


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A server of its own, which must be empty again at once."""
    with serving(tmp_path_factory.mktemp("openapi") / "log", 10) as (url, _):
        assert requests.get(f"{url}/openapi.json", timeout=10).json() == DOCUMENT
        yield url


# A plain step is always refused, and a page may be asked to go on after the end: what is valid
# there no schema can say.
REFUSING = ["/step", "/web"]


@routes.exclude(path=REFUSING).parametrize()
def test_the_published_document_is_true(case, address):
    case.call_and_validate(base_url=address)


@routes.include(path=REFUSING).parametrize()
def test_the_published_document_is_true_where_much_is_refused(case, address):
    case.call_and_validate(
        base_url=address, excluded_checks=[schemathesis.checks.positive_data_acceptance]
    )
