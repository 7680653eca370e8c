"""TMP"""


def summarise_sweep(sweep):
    return []
