"""What several tests of the laboratory share."""

import json

from logtriage.play.actions import Action


def lines(path):
    """The rows of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def asks(service):
    return Action("request_more_logs", (service,))


def blames(service):
    return Action("identify_root_cause", (service,))


def secrets(case):
    """What no agent may see of a real incident before its end: the fault's place in the source, how
    it was injected, and its name unless that is a word of every log.
    """
    truth = case.truth
    common = ("errors", "exception", "return")
    return {text for text in (truth.origin, truth.how, truth.fault) if text and text not in common}
