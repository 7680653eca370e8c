"""What no agent may see of a real incident before its end."""


def secrets(case):
    """What only the truth holds: the fault's place in the source, how it was injected, and its name
    unless that is a word of every log.
    """
    truth = case.truth
    common = ("errors", "exception", "return")
    return {text for text in (truth.origin, truth.how, truth.fault) if text and text not in common}
