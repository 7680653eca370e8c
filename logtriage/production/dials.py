"""How messy a cluster of the task `production` is: every dial, and the real statistic it follows.

A pair is a range from which each cluster draws, uniformly unless it says otherwise; the network of
`ranker` learns from the whole range. Statistics are those of the real cases (docs/real.md), in the
order PetShop, Train Ticket, Online Boutique. Where none is named, the sources do not tell it.
"""

from dataclasses import dataclass

Range = tuple[float, float]


@dataclass(frozen=True)
class Dials:
    """The spread of clusters, of their noise, and of what is measured of them."""

    # --- the call graph
    services: tuple[int, int] = (10, 45)  # log-uniform; 43, 28 and 10
    layers: tuple[int, int] = (3, 6)  # services on the longest path: 6, 6 and 3
    entries: float = 0.6  # chance that there is no further service that users reach; 5 at most
    # Chance that a service is called by more than one other, .16, .48 and .44 are; most callers: 6.
    shared: Range = (0.05, 0.65)
    proxies: Range = (0.0, 0.4)  # share of services that only hand on: PetShop's clients, buckets
    unused: Range = (-0.1, 0.25)  # share that nobody calls these days; below 0 counts as none

    # --- the usual
    own_time: Range = (5.0, 1.2)  # ms a service itself takes: median, and sigma of its logarithm
    requests: Range = (2.0, 1.5)  # a second at an entry: median and sigma; .01 to 300
    errors: float = 0.15  # share of services with failing requests as a matter of course
    band: Range = (0.45, 0.7)  # half width of a p95's band, of the usual: .34, 1.02 and .67

    # --- today
    load: Range = (0.02, 0.35)  # how far all requests wander together
    # How far a service's day is from its usual: first samples are .1 to .3 off.
    drift: Range = (0.02, 0.3)
    correlated: Range = (0.0, 0.7)  # correlation of a sample with the one before
    shifts: Range = (0.0, 0.12)  # chance that a metric is at another level: 10, 5 and 1 bystanders
    spikes: Range = (0.0, 0.06)  # chance that one sample of a metric is far off
    failing: Range = (0.0, 0.06)  # chance that a bystander fails on its own
    missing: Range = (0.0, 0.06)  # share of samples that are lost beside those without a request
    dark: Range = (0.0, 0.12)  # share of services of which only requests are known
    deploys: float = 0.1  # chance that an innocent service was deployed within the hour

    # --- what errors do
    passed_on: Range = (0.3, 1.0)  # share of its failed calls for which a caller's request fails
    swallowed: float = 0.35  # share of calls whose failure the caller hides


USUAL = Dials()  # of whatever is played
