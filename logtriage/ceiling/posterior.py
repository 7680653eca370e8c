"""What can be known: hypotheses weighed by what is seen, with the simulator's own distributions.

`Posterior` applies Bayes' rule to each observation, with the distributions that `telemetry` names,
over the hypotheses of a `Prior`. It never looks at an incident's truth. Approximate are the
intensity, a grid (so a figure is compared within half the distance to the neighbours on it, and
what the grid excludes keeps a chance of `ODDITY`), and decoys, taken as drawn anew for each
observation. Of a log line only its reading counts, not the numbers in it: a coarser observation,
not a wrong one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr

from ..play.actions import ALL_SERVICES
from ..play.observation import Observation
from ..world import telemetry
from ..world.faults import faults_at
from ..world.wording import Reading, read_line
from .prior import Prior

UNLIKELY = 1e-6  # hypotheses below this share of the belief are dropped
ODDITY = 1e-5  # chance left to a figure that a hypothesis excludes: the grid is not the truth
TINY = 1e-100  # a likelihood that is scaled up again, lest many oddities in one table make it 0


def printed_between(value: float, digits: int) -> tuple[float, float]:
    """The quantities that are printed as `value`: two digits as `telemetry.figure` does, one as
    `telemetry.one_digit`.
    """
    scale = 10.0 ** max(0, len(str(int(value))) - digits)
    if digits == 2 and value < 10.0:
        scale = 0.1
    # Below a power of ten the figures stand ten times closer.
    below = scale / 10.0 if value >= 10.0 and value == 10.0 ** (len(str(int(value))) - 1) else scale
    return value - below / 2.0, value + scale / 2.0


def _printed(value: float, mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Chance that an alert prints a quantity known as mean and spread as `value`."""
    low, high = printed_between(value, digits=1)
    return ndtr((high - mean) / spread) - ndtr((low - mean) / spread) + ODDITY


def _triangular(x: np.ndarray) -> np.ndarray:
    """Distribution function of the triangular distribution on (-1, 1)."""
    x = np.clip(x, -1.0, 1.0)
    return np.where(x < 0.0, 0.5 * (1.0 + x) ** 2, 1.0 - 0.5 * (1.0 - x) ** 2)


def _noisy(low: float, high: float, mean: np.ndarray, gap: np.ndarray) -> np.ndarray:
    """Chance that a quantity known as mean and gap lies in [low, high] after the noise of the
    metrics table.
    """
    width = telemetry.METRIC_NOISE * mean + gap + 1e-6
    return (
        np.maximum(0.0, _triangular((high - mean) / width) - _triangular((low - mean) / width))
        + ODDITY
    )


class Posterior:
    """The posterior of one episode.

    Args:
        prior: from `cached_prior`, or built for the incident's own topology.
    """

    def __init__(self, prior: Prior) -> None:
        self.prior, self.topology, self.task = prior, prior.topology, prior.task
        self._know_nothing()

    def _know_nothing(self) -> None:
        # Indices of the hypotheses that are still likely, and their weights, (len(alive), Q).
        self.alive = np.arange(len(self.prior.run))
        self.weight = self.prior.weight / self.prior.weight.sum()
        self._known: dict[tuple, Any] = {}  # what was worked out for the hypotheses alive now

    def copy(self) -> Posterior:
        """Another that believes the same; what either sees from now on is none of the other's."""
        other = Posterior(self.prior)
        other.alive, other.weight = self.alive, self.weight  # never changed in place
        return other

    def see(self, observation: Observation, asked: str | None) -> None:
        """Update on an observation.

        `asked` is the service or `all` whose logs it answers; None for the opening.

        An observation that no living hypothesis allows says that a dropped one was true: all are
        taken up again, with this observation alone to go by.

        Raises:
            ValueError: when no hypothesis allows the observation.
        """
        dark = observation.step < self.prior.quiet
        for _ in range(2):
            likelihood = self._likelihood(observation, asked)
            weight = self.weight * np.where(dark, likelihood[:, 1:], likelihood[:, :1])
            if weight.sum() > 0.0:
                break
            self._know_nothing()
        else:
            raise ValueError(
                "what was seen is impossible under every hypothesis; "
                "was the world changed without the belief?"
            )
        self.weight = weight / weight.sum()
        self.keep_likelier_than(UNLIKELY)

    def keep_likelier_than(self, share: float) -> None:
        """Drop the hypotheses below this share of the likeliest."""
        mass = self.weight.sum(1)
        keep = mass > share * mass.max()
        self.alive, self.weight = self.alive[keep], self.weight[keep]
        self._known.clear()

    def _likelihood(self, observation: Observation, asked: str | None) -> np.ndarray:
        """Chance of an observation, (len(alive), 2): when the root speaks, and when it is dark."""
        likelihood = np.ones((len(self.alive), 2))
        if asked is None or asked == ALL_SERVICES:
            self._weigh_alerts(observation, likelihood)
        if asked is None:  # who has no row then has none later
            self._weigh_missing_rows(observation, likelihood)
        for metric in observation.metrics or ():
            at = self.topology.position[metric.service]
            likelihood *= self._metric(at, metric, observation.step)[:, None]
            if 0.0 < likelihood.max() < TINY:  # only ratios count
                likelihood /= likelihood.max()
        lines = [read_line(line) for line in observation.lines or ()]
        read = [(self.topology.position[name], reading) for name, reading in lines]
        if asked is None:
            self._weigh_stream(read, observation.step, likelihood)
        else:
            self._weigh_answer(read, observation.step, likelihood, asked == ALL_SERVICES)
        return likelihood

    def _weigh_stream(
        self, read: list[tuple[int, Reading]], step: int, likelihood: np.ndarray
    ) -> None:
        """The first batch of lines: noise from anybody, or what a service says in proportion to
        how loud it is.
        """
        size, root = len(self.topology.services), self.prior.position[self.alive]
        loud = self.loudness(step)
        # All of the log, and what is left of it when the root is dark and prints nothing.
        lit = loud.sum(1)
        dark = lit - np.where(root >= 0, loud[np.arange(len(root)), root], 0.0)
        for at, reading in read:
            said = (1.0 - self.task.noise) * loud[:, at] * self.says(at, [reading], step)
            noise = self.task.noise / size * (reading.kind == "benign")
            by_root = [said / lit, np.where(root == at, 0.0, said / dark)]
            likelihood *= noise + np.stack(by_root, 1)

    def _weigh_answer(
        self, read: list[tuple[int, Reading]], step: int, likelihood: np.ndarray, of_all: bool
    ) -> None:
        """The lines that answer a question: of one service, or one each of several (`of_all`)."""
        said_by: dict[int, list[Reading]] = {}
        for at, reading in read:
            said_by.setdefault(at, []).append(reading)
        root = self.prior.position[self.alive]
        for at, readings in said_by.items():
            said = self.says(at, readings, step)
            # Among all, a dark root's line is an ordinary one.
            ordinary = float({reading.kind for reading in readings} <= {"normal", "unknown"})
            likelihood[:, 0] *= said
            likelihood[:, 1] *= np.where(root == at, ordinary, said) if of_all else said

    def states(self, name: str, step: int) -> np.ndarray:
        """Values of the prior's array `name` at that step, (len(alive), S), or (len(alive),) for
        `visible`.
        """
        prior, key = self.prior, (name, step)
        if key not in self._known:
            self._known[key] = getattr(prior, name)[
                prior.run[self.alive], prior.arrival[self.alive] + step
            ]
        return self._known[key]

    def _weigh_missing_rows(self, observation: Observation, likelihood: np.ndarray) -> None:
        """Which rows of the metrics table are missing; those of a dark root always are."""
        root = self.prior.position[self.alive]
        shown = [self.topology.position[metric.service] for metric in observation.metrics or ()]
        absent = np.isin(root, np.setdiff1d(np.arange(len(self.topology.services)), shown))
        likelihood[:, 1] *= np.where(root < 0, 1.0, absent / max(self.task.gaps, ODDITY))

    def _weigh_alerts(self, observation: Observation, likelihood: np.ndarray) -> None:
        """Which thresholds are crossed, and the figures that the alerts print."""
        root, rest = self.prior.position[self.alive], self.topology.network.rest_latency
        errors = 100.0 * self.states("errors", observation.step)
        latency = self.states("latency", observation.step)
        error_spread = 100.0 * self.states("errors_gap", observation.step) + 0.02
        spread = self.states("latency_gap", observation.step) + 0.02
        alerts = {
            self.topology.position[alert.service]: alert for alert in observation.alerts or ()
        }
        for at, service in enumerate(self.topology.services):
            if service.kind not in telemetry.ALERTED_KINDS:
                continue
            calm = ndtr((100.0 * telemetry.ALERT_ERRORS - errors[:, at]) / error_spread[:, at])
            limit = telemetry.ALERT_SLOWDOWN * rest[at]
            if at not in alerts:
                chance = calm * ndtr((limit - latency[:, at]) / spread[:, at]) + ODDITY
            elif alerts[at].metric == "errors":
                chance = _printed(alerts[at].value, errors[:, at], error_spread[:, at])
            else:
                chance = calm * _printed(alerts[at].value, latency[:, at], spread[:, at]) + ODDITY
            likelihood[:, 0] *= chance
            likelihood[:, 1] *= np.where(root == at, float(at not in alerts), chance)

    def _metric(self, at: int, metric: telemetry.Metric, step: int) -> np.ndarray:
        """Chance of a row's figures, (len(alive),): the age of the reading is not known."""
        prior, errors, latency = self.prior, metric.errors, metric.latency
        assert errors is not None and latency is not None  # no cell of a simulated row is empty
        latencies = printed_between(latency, digits=2)
        # Whole per cents, cut at 100.
        shares = (errors - 0.5, np.inf if errors == 100.0 else errors + 0.5)
        run, now = prior.run[self.alive], prior.arrival[self.alive] + step
        ages, times = np.unique(telemetry.STALENESS, return_counts=True)
        chance = np.zeros(len(self.alive))
        for age, share in zip(ages, times / times.sum(), strict=True):
            tick = np.maximum(0, now - age)
            slow = _noisy(
                *latencies, prior.latency[run, tick, at], prior.latency_gap[run, tick, at]
            )
            fails = _noisy(
                *shares,
                100.0 * prior.errors[run, tick, at],
                100.0 * prior.errors_gap[run, tick, at],
            )
            chance += share * slow * fails
        return chance

    def own_trouble(self, at: int, step: int) -> np.ndarray:
        """`Telemetry.own_trouble` of service `at` under each hypothesis, (len(alive),)."""
        network = self.topology.network
        errors = self.states("errors", step)
        latency = self.states("latency", step)
        passed = np.ones(len(errors))
        own_latency = latency[:, at].copy()
        own_rest = network.rest_latency[at]
        for other, share in network.callees[at]:
            if network.routes[at]:
                passed = passed - share * errors[:, other]
            else:
                passed = passed * (1.0 - errors[:, other])
            own_latency -= share * latency[:, other]
            own_rest -= share * network.rest_latency[other]
        own = np.where(passed > 0.01, 1.0 - (1.0 - errors[:, at]) / np.maximum(passed, 0.01), 0.0)
        return np.maximum(
            own, np.where(own_latency > telemetry.SLOW * own_rest, telemetry.LOUDNESS_SLOW, 0.0)
        )

    def loudness(self, step: int) -> np.ndarray:
        """`Telemetry.loudness` under each hypothesis when nobody is dark, (len(alive), S)."""
        trouble, errors = self.states("trouble", step), self.states("errors", step)
        loud: np.ndarray = np.full(errors.shape, telemetry.LOUDNESS_AT_REST)
        for at in range(loud.shape[1]):
            own = telemetry.STACK_TRACES * self.own_trouble(at, step)
            loud[:, at] += trouble[:, at] * (
                np.maximum(telemetry.LOUDNESS_SLOW, errors[:, at]) + own
            )
        return loud * np.array(
            [telemetry.VOLUME[service.kind] for service in self.topology.services]
        )

    def line_shares(self, at: int, step: int, decoy: bool = False) -> dict[str, np.ndarray]:
        """`Telemetry.line_weights` of service `at` under each hypothesis, by kind of line, as
        shares of their sum.

        With `decoy`, as they are when the service hints at a remedy in all innocence.
        """
        key = (at, step, decoy)
        if key in self._known:
            return self._known[key]
        trouble, here = self.states("trouble", step), self.prior.position[self.alive] == at
        visible = self.states("visible", step) * here
        below = trouble[:, list(self.topology.below[at])].any(1)
        weights = {
            "proof": self.task.proof * visible,
            "hint": self.task.hint * (np.where(here, visible, 1.0) if decoy else visible),
            "callee": telemetry.CALLEE_WEIGHT * below,
            "own": telemetry.OWN_WEIGHT * trouble[:, at],
            "benign": np.full(len(here), self.task.noise),
            "normal": np.full(len(here), telemetry.NORMAL_WEIGHT),
        }
        total = sum(weights.values())
        self._known[key] = {kind: weight / total for kind, weight in weights.items()}
        return self._known[key]

    def says(self, at: int, readings: Sequence[Reading], step: int) -> np.ndarray:
        """Chance that lines of service `at` read so, under each hypothesis; whether it is a decoy
        is not known.

        Observations are taken as if the decoys were drawn anew for each: an approximation, and
        exact without decoys.
        """
        chance = np.ones(len(self.alive))
        for reading in readings:
            chance = chance * self._says(at, reading, step)
        if not self.task.decoys:
            return chance
        remedies = sorted({fault.remedy for fault in faults_at(self.topology.services[at])})
        as_decoy = np.zeros(len(self.alive))
        for remedy in remedies:
            one = np.ones(len(self.alive))
            for reading in readings:
                one = one * self._says(at, reading, step, remedy)
            as_decoy += one / len(remedies)
        root = self.prior.position[self.alive]
        share = np.where(
            root == at, 0.0, self.task.decoys / (len(self.topology.services) - (root >= 0))
        )
        return (1.0 - share) * chance + share * as_decoy

    def _says(self, at: int, reading: Reading, step: int, decoy: str = "") -> np.ndarray:
        """Chance that one line reads so; 1 for text nobody can read.

        `decoy` is what an innocent service hints at.
        """
        shares = self.line_shares(at, step, bool(decoy))
        if reading.kind not in shares:
            return np.ones(len(self.alive))
        chance = shares[reading.kind]
        fault, here = self.prior.fault[self.alive], self.prior.position[self.alive] == at
        if reading.kind == "proof":
            proved = np.array([f.name == reading.subject for f in self.prior.faults])
            chance = chance * proved[fault]
        elif reading.kind == "hint":
            own = np.array([f.remedy == reading.subject for f in self.prior.faults])[fault]
            chance = chance * np.where(here, own, decoy == reading.subject)
        elif reading.kind == "callee":
            chance = chance * self._callee_share(at, self.topology.position[reading.subject], step)
        # Trouble is a threshold, and the grid may stand just below it where the truth stands above.
        return np.maximum(chance, ODDITY) if reading.kind in ("callee", "own") else chance

    def _callee_share(self, at: int, named: int, step: int) -> np.ndarray:
        """Chance that a line of `at` about a callee names `named`."""
        errors, latency, trouble = (
            self.states(name, step) for name in ("errors", "latency", "trouble")
        )
        rest, total, share = self.topology.network.rest_latency, 0.0, 0.0
        for other in self.topology.below[at]:
            slow = 1.0 - rest[other] / np.maximum(latency[:, other], rest[other])
            weight = trouble[:, other] * (errors[:, other] + slow + 0.01)
            total = total + weight
            share = weight if other == named else share
        return share / np.maximum(total, 1e-12)

    def roots(self) -> np.ndarray:
        """Probability of each service to be the root, and, last, that there is none: (S + 1,)."""
        size = len(self.topology.services)
        root = self.prior.position[self.alive]
        return np.bincount(np.where(root < 0, size, root), self.weight.sum(1), minlength=size + 1)
