"""What several tests of the laboratory share."""

import json


def lines(path):
    """The rows of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]
