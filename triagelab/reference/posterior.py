"""The exact posterior: hypotheses weighted by what is seen, with the simulator's distributions.

`Posterior` applies Bayes' rule to each observation, with the distributions of `telemetry`, over the
hypotheses of a `Prior`. Only the intensity is approximate, because it is on a grid: figures match
within half the distance to the neighbours on the grid, and a figure that it excludes keeps a chance
of `EPSILON`. Log lines count by their reading, not by the numbers in them.

Shapes: `H` living hypotheses, `S` services, `Q` lengths of time for which a root's output may be
suppressed. Likelihoods are (H, 2): while the root prints, and while its output is suppressed.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr

from logtriage.play.actions import ALL_SERVICES
from logtriage.play.observation import Observation
from logtriage.world import telemetry
from logtriage.world.wording import Reading, read_line

from .prior import Prior

UNLIKELY = 1e-6  # hypotheses below this share of the likeliest are dropped
EPSILON = 1e-5  # chance of a figure that a hypothesis excludes, as the grid is not the truth
TINY = 1e-100  # likelihoods below this are scaled up, or many `EPSILON`s could make them 0

Lines = list[tuple[int, Reading]]  # the position of a service, and what its line says


def printed_between(value: float, digits: int) -> tuple[float, float]:
    """Bounds of the quantities that `telemetry.one_digit` or `two_digits` rounds to `value`."""
    scale = 10.0 ** max(0, len(str(int(value))) - digits)
    if digits == 2 and value < 10.0:
        scale = 0.1
    # Below a power of ten, rounded figures are ten times closer together.
    below = scale / 10.0 if value >= 10.0 and value == 10.0 ** (len(str(int(value))) - 1) else scale
    return value - below / 2.0, value + scale / 2.0


def _printed(value: float, mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Chance that an alert shows `value` for a normal variable of this mean and spread."""
    low, high = printed_between(value, digits=1)
    return ndtr((high - mean) / spread) - ndtr((low - mean) / spread) + EPSILON


def _triangular(x: np.ndarray) -> np.ndarray:
    """Distribution function of the triangular distribution on (-1, 1)."""
    x = np.clip(x, -1.0, 1.0)
    return np.where(x < 0.0, 0.5 * (1.0 + x) ** 2, 1.0 - 0.5 * (1.0 - x) ** 2)


def _noisy(low: float, high: float, mean: np.ndarray, gap: np.ndarray) -> np.ndarray:
    """Chance that a quantity at `mean`, give or take `gap`, is in [low, high] in a noisy table."""
    width = telemetry.METRIC_NOISE * mean + gap + 1e-6
    chance = _triangular((high - mean) / width) - _triangular((low - mean) / width)
    return np.maximum(0.0, chance) + EPSILON


class Posterior:
    """The posterior of one episode, from the prior of its topology."""

    def __init__(self, prior: Prior) -> None:
        self.prior, self.topology, self.task = prior, prior.topology, prior.task
        self._start()

    def _start(self) -> None:
        self.alive = np.arange(len(self.prior.run))  # hypotheses that are still likely, (H,)
        self.weight = self.prior.weight / self.prior.weight.sum()  # their probabilities, (H, Q)
        self._known: dict[tuple, Any] = {}  # cached results for the hypotheses alive now

    @property
    def _root(self) -> np.ndarray:
        """Position of each hypothesis' root, -1 for a false alarm: (H,)."""
        return self.prior.position[self.alive]

    def see(self, observation: Observation, asked: str | None) -> None:
        """Update on the opening, or on the answer about the service (or `all`) that was `asked`.
        If no living hypothesis allows the observation, a dropped one was true, so the posterior
        starts again from this observation alone. `ValueError` if no hypothesis at all allows it.
        """
        suppressed = observation.step < self.prior.quiet
        for _ in range(2):
            likelihood = self._likelihood(observation, asked)
            weight = self.weight * np.where(suppressed, likelihood[:, 1:], likelihood[:, :1])
            if weight.sum() > 0.0:
                break
            self._start()
        else:
            raise ValueError(
                "seen what is impossible under every hypothesis; did the world change?"
            )
        weight = weight / weight.sum()
        mass = weight.sum(1)
        keep = mass > UNLIKELY * mass.max()
        self.alive, self.weight = self.alive[keep], weight[keep]
        self._known.clear()

    def _likelihood(self, observation: Observation, asked: str | None) -> np.ndarray:
        """Chance of an observation, (H, 2)."""
        likelihood = np.ones((len(self.alive), 2))
        if asked is None or asked == ALL_SERVICES:
            self._weigh_alerts(observation, likelihood)
        if asked is None:  # a service without a row never gets one later
            self._weigh_missing_rows(observation, likelihood)
        for metric in observation.metrics or ():
            likelihood *= self._metric(metric, observation.step)[:, None]
            if 0.0 < likelihood.max() < TINY:  # only ratios matter
                likelihood /= likelihood.max()
        lines = [read_line(line) for line in observation.lines or ()]
        read = [(self.topology.position[name], reading) for name, reading in lines]
        if asked is None:
            self._weigh_stream(read, observation.step, likelihood)
        else:
            self._weigh_answer(read, observation.step, likelihood, asked == ALL_SERVICES)
        return likelihood

    def _weigh_stream(self, read: Lines, step: int, likelihood: np.ndarray) -> None:
        """Weigh the opening's lines: noise of any service, or lines in proportion to log volume."""
        size, root = len(self.topology.services), self._root
        volume = self.log_volume(step)
        # The whole log volume, and what is left of it while the root's output is suppressed.
        whole = volume.sum(1)
        rest = whole - np.where(root >= 0, volume[np.arange(len(root)), root], 0.0)
        for at, reading in read:
            line = (1.0 - self.task.noise) * volume[:, at] * self.line_chance(at, [reading], step)
            noise = self.task.noise / size * (reading.kind == "benign")
            shares = [line / whole, np.where(root == at, 0.0, line / rest)]
            likelihood *= noise + np.stack(shares, 1)

    def _weigh_answer(self, read: Lines, step: int, likelihood: np.ndarray, of_all: bool) -> None:
        """Weigh the lines of an answer: from one service, or one each from several (`of_all`)."""
        lines_of: dict[int, list[Reading]] = {}
        for at, reading in read:
            lines_of.setdefault(at, []).append(reading)
        for at, readings in lines_of.items():
            chance = self.line_chance(at, readings, step)
            # In an answer about all services, a suppressed root prints an ordinary line.
            ordinary = float({reading.kind for reading in readings} <= {"normal", "unknown"})
            likelihood[:, 0] *= chance
            likelihood[:, 1] *= np.where(self._root == at, ordinary, chance) if of_all else chance

    def states(self, name: str, step: int) -> np.ndarray:
        """The prior's array `name` at that step: (H, S), or (H,) for `visible`."""
        key = (name, step)
        if key not in self._known:
            run, tick = self.prior.run[self.alive], self.prior.arrival[self.alive] + step
            self._known[key] = getattr(self.prior, name)[run, tick]
        return self._known[key]

    def _weigh_missing_rows(self, observation: Observation, likelihood: np.ndarray) -> None:
        """Weigh which rows of the metrics table are missing; a suppressed root's row always is."""
        rows = [self.topology.position[metric.service] for metric in observation.metrics or ()]
        missing = np.setdiff1d(np.arange(len(self.topology.services)), rows)
        absent = np.isin(self._root, missing) / max(self.task.gaps, EPSILON)
        likelihood[:, 1] *= np.where(self._root < 0, 1.0, absent)

    def _weigh_alerts(self, observation: Observation, likelihood: np.ndarray) -> None:
        """Weigh which thresholds are exceeded, and the figures that the alerts show."""
        step, rest = observation.step, self.topology.network.rest_latency
        errors, latency = 100.0 * self.states("errors", step), self.states("latency", step)
        error_spread = 100.0 * self.states("errors_gap", step) + 0.02
        spread = self.states("latency_gap", step) + 0.02
        alerts = {
            self.topology.position[alert.service]: alert for alert in observation.alerts or ()
        }
        for at, service in enumerate(self.topology.services):
            if service.kind not in telemetry.ALERTED_KINDS:
                continue
            calm = ndtr((100.0 * telemetry.ALERT_ERRORS - errors[:, at]) / error_spread[:, at])
            if at not in alerts:
                limit = telemetry.ALERT_SLOWDOWN * rest[at]
                chance = calm * ndtr((limit - latency[:, at]) / spread[:, at]) + EPSILON
            elif alerts[at].metric == "errors":
                chance = _printed(alerts[at].value, errors[:, at], error_spread[:, at])
            else:
                printed = _printed(alerts[at].value, latency[:, at], spread[:, at])
                chance = calm * printed + EPSILON
            likelihood[:, 0] *= chance
            likelihood[:, 1] *= np.where(self._root == at, float(at not in alerts), chance)

    def _metric(self, metric: telemetry.Metric, step: int) -> np.ndarray:
        """Chance of a row of the metrics table, whose age is unknown, (H,)."""
        prior, at = self.prior, self.topology.position[metric.service]
        errors, latency = metric.errors, metric.latency
        assert errors is not None and latency is not None  # no cell of a simulated row is empty
        latencies = printed_between(latency, digits=2)
        # Whole per cents, cut at 100.
        shares = (errors - 0.5, np.inf if errors == 100.0 else errors + 0.5)
        run, now = prior.run[self.alive], prior.arrival[self.alive] + step
        ages, times = np.unique(telemetry.STALENESS, return_counts=True)
        chance = np.zeros(len(self.alive))
        for age, share in zip(ages, times / times.sum(), strict=True):
            cell = (run, np.maximum(0, now - age), at)
            slow = _noisy(*latencies, prior.latency[cell], prior.latency_gap[cell])
            fails = _noisy(*shares, 100.0 * prior.errors[cell], 100.0 * prior.errors_gap[cell])
            chance += share * slow * fails
        return chance

    def own_trouble(self, at: int, step: int) -> np.ndarray:
        """`Telemetry.own_degradation` of service `at` under each hypothesis, (H,)."""
        network = self.topology.network
        errors, latency = self.states("errors", step), self.states("latency", step)
        passed = np.ones(len(errors))
        own_latency, own_rest = latency[:, at].copy(), network.rest_latency[at]
        for other, share in network.callees[at]:
            if network.routes[at]:
                passed = passed - share * errors[:, other]
            else:
                passed = passed * (1.0 - errors[:, other])
            own_latency -= share * latency[:, other]
            own_rest -= share * network.rest_latency[other]
        own = np.where(passed > 0.01, 1.0 - (1.0 - errors[:, at]) / np.maximum(passed, 0.01), 0.0)
        slow = np.where(own_latency > telemetry.SLOW * own_rest, telemetry.VOLUME_SLOW, 0.0)
        return np.maximum(own, slow)

    def log_volume(self, step: int) -> np.ndarray:
        """`Telemetry.log_volumes` under each hypothesis when no output is suppressed, (H, S)."""
        degraded, errors = self.states("degraded", step), self.states("errors", step)
        volume: np.ndarray = np.full(errors.shape, telemetry.VOLUME_AT_REST)
        for at in range(volume.shape[1]):
            own = telemetry.OWN_VOLUME * self.own_trouble(at, step)
            loud = np.maximum(telemetry.VOLUME_SLOW, errors[:, at])
            volume[:, at] += degraded[:, at] * (loud + own)
        kinds = [telemetry.VOLUME[service.kind] for service in self.topology.services]
        return volume * np.array(kinds)

    def line_shares(self, at: int, step: int) -> dict[str, np.ndarray]:
        """`Telemetry.line_weights` of service `at` by kind, as shares of their sum, (H,) each."""
        key = (at, step)
        if key in self._known:
            return self._known[key]
        degraded, here = self.states("degraded", step), self._root == at
        visible = self.states("visible", step) * here
        below = degraded[:, list(self.topology.below[at])].any(1)
        weights = {
            "proof": self.task.proof * visible,
            "hint": self.task.hint * visible,
            "callee": telemetry.CALLEE_WEIGHT * below,
            "own": telemetry.OWN_WEIGHT * degraded[:, at],
            "benign": np.full(len(here), self.task.noise),
            "normal": np.full(len(here), telemetry.NORMAL_WEIGHT),
        }
        total = sum(weights.values())
        self._known[key] = {kind: weight / total for kind, weight in weights.items()}
        return self._known[key]

    def line_chance(self, at: int, readings: Sequence[Reading], step: int) -> np.ndarray:
        """Chance of lines of service `at` with these readings, (H,)."""
        chance = np.ones(len(self.alive))
        for reading in readings:
            chance = chance * self._reading_chance(at, reading, step)
        return chance

    def _reading_chance(self, at: int, reading: Reading, step: int) -> np.ndarray:
        """Chance of one line, (H,); 1 for text without a known reading."""
        shares = self.line_shares(at, step)
        if reading.kind not in shares:
            return np.ones(len(self.alive))
        chance, fault = shares[reading.kind], self.prior.fault[self.alive]
        if reading.kind == "proof":
            proved = np.array([kind.name == reading.subject for kind in self.prior.faults])
            return chance * proved[fault]
        if reading.kind == "hint":
            remedies = np.array([kind.remedy == reading.subject for kind in self.prior.faults])
            own = remedies[fault]
            return chance * (own & (self._root == at))
        if reading.kind == "callee":
            chance = chance * self._callee_share(at, self.topology.position[reading.subject], step)
        elif reading.kind != "own":
            return chance
        # `degraded` is a threshold: the grid may be just below it when the truth is above.
        return np.maximum(chance, EPSILON)

    def _callee_share(self, at: int, named: int, step: int) -> np.ndarray:
        """Chance that a line of `at` about a callee names `named`, (H,)."""
        errors, latency = self.states("errors", step), self.states("latency", step)
        degraded = self.states("degraded", step)
        rest, total, share = self.topology.network.rest_latency, 0.0, 0.0
        for other in self.topology.below[at]:
            slow = 1.0 - rest[other] / np.maximum(latency[:, other], rest[other])
            weight = degraded[:, other] * (errors[:, other] + slow + 0.01)
            total = total + weight
            share = weight if other == named else share
        return share / np.maximum(total, 1e-12)

    def roots(self) -> np.ndarray:
        """Probability that each service is the root, and last, that there is no root: (S + 1,)."""
        size = len(self.topology.services)
        positions = np.where(self._root < 0, size, self._root)
        return np.bincount(positions, self.weight.sum(1), minlength=size + 1)
