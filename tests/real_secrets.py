"""What nobody may be told of a real incident before its end."""


def secrets(case):
    """What only the truth holds: where the source tells of the fault, how it was made, and its name
    unless that is a word of every log.
    """
    truth = case.truth
    common = ("errors", "exception", "return")
    return {text for text in (truth.origin, truth.how, truth.fault) if text and text not in common}
