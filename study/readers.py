"""How much of the ceiling is left on `unseen_wording` to someone who reads lines by their words?

The reader learns which words stand in which section of the wording, from the text that the embedded
model learns from, and gives every section of a line a probability (naive Bayes; temperature and
floor chosen by leaving out one template at a time). `trace` takes the likeliest section for the
truth. `belief` weighs all of them. Kind of service and names in a line are given.
"""

import math
import re
from collections import Counter
from functools import cache
from itertools import product

import numpy as np

from logtriage.ceiling import posterior
from logtriage.ceiling.belief import BeliefPolicy
from logtriage.play.actions import Action
from logtriage.play.episode import Episode
from logtriage.policies import scripted
from logtriage.world.tasks import TASKS
from logtriage.world.topology import DEFAULT_TOPOLOGY
from logtriage.world.wording import BOOKS, VARIED_BOOKS, Reading, choices, read_line

KIND = {service.name: service.kind for service in DEFAULT_TOPOLOGY.services}
INCIDENTS, TUNED_ON = 100, range(3_600_000, 3_600_060)
SMOOTHING = 0.1  # of a word's count in a section


class Weighed(Reading):
    """A line with the probability of each reading, as pairs in `options`."""


def words(text):
    found = re.findall("[A-Za-z]{3,}", re.sub(r"{\w+}", " ", text))
    return frozenset(word.lower() for word in found)


def template_words(template):
    """Each word of a varied template to the share of its versions that have it."""
    versions = choices(template)[:200]
    counts = Counter()
    for version in versions:
        for word in words(version):
            counts[word] += 1 / len(versions)
    return counts


TEMPLATES = {
    (kind, key): [Counter(words(one)) for one in templates[:-1]]
    + [template_words(one) for one in VARIED_BOOKS[kind][key]]
    for kind, book in BOOKS.items()
    for key, templates in book.items()
}
COUNTS = {section: sum(counts, Counter()) for section, counts in TEMPLATES.items()}
KNOWN = {word for counts in COUNTS.values() for word in counts}


@cache
def sections(kind, names_one):
    """Sections of a kind of service; those about callees if the line names a service."""
    return [one for one in COUNTS if one[1][-1] == kind and (one[0] == "callee") == names_one]


def evidence(line_words, counts):
    total = sum(counts.values()) + SMOOTHING * len(KNOWN)
    return sum(math.log((counts[word] + SMOOTHING) / total) for word in line_words & KNOWN)


def probabilities(logs, temperature, floor):
    weights = np.exp(temperature * (logs - logs.max()))
    return (1 - floor) * weights / weights.sum() + floor / len(weights)


def chosen():
    """Temperature and floor with the highest likelihood of templates that were left out."""
    rows = []
    for section, templates in TEMPLATES.items():
        candidates = sections(section[1][-1], section[0] == "callee")
        for counts in templates:
            line = {word for word, share in counts.items() if share >= 0.5} or set(counts)
            without = {section: COUNTS[section] - counts}
            logs = [evidence(line, without.get(one, COUNTS[one])) for one in candidates]
            rows.append((candidates.index(section), np.array(logs)))
    grid = product((0.15, 0.25, 0.35, 0.5, 0.7, 1.0), (0.005, 0.02, 0.05, 0.1, 0.2))
    return max(
        grid, key=lambda pair: sum(math.log(probabilities(logs, *pair)[at]) for at, logs in rows)
    )


@cache
def printed():
    """How often lines of each kind are printed, by kind of service, on a slice of `train`."""
    seen = Counter()
    for task, index in product(TASKS, TUNED_ON):
        episode = Episode.open(task, "train", index)
        asked = [episode.act(Action("request_more_logs", (name,))) for name in KIND]
        for observation in (episode.opening, *asked):
            for service, reading in map(read_line, observation.lines or ()):
                seen[reading.kind, KIND[service]] += 1
    return seen


def parts(line):
    """Service, kind, the service named in the line, and the line's words."""
    level, service, text = line.split(" ", 2)
    named = [word for word in re.findall(r"[\w-]+", text) if word in KIND]
    for one in named:
        text = text.replace(one, " ")
    return service, KIND[service], "".join(named[:1]), words(f"{level} {text}")


def reading_of(section, named):
    kind, key = section
    return Reading(kind, named if kind == "callee" else key[0] if len(key) > 1 else "")


def likeliest(line):
    """Read a line as the section that is likeliest, given how often its kind is printed."""
    service, kind, named, found = parts(line)
    candidates = sections(kind, bool(named))
    size = Counter(one[0] for one in candidates)

    def chance(one):
        return evidence(found, COUNTS[one]) + math.log((printed()[one[0], kind] + 1) / size[one[0]])

    return service, reading_of(max(candidates, key=chance), named)


def weighed(line):
    service, kind, named, found = parts(line)
    reading = Weighed("weighed")
    reading.options = _options(kind, named, found)
    return service, reading


@cache
def _options(kind, named, found):
    candidates = sections(kind, bool(named))
    logs = np.array([evidence(found, COUNTS[one]) for one in candidates])
    chances = probabilities(logs, *SETTINGS)
    return [
        (reading_of(one, named), chance) for one, chance in zip(candidates, chances, strict=True)
    ]


class WeighingPosterior:
    """The two methods of `Posterior` that take a reading for certain."""

    certain = staticmethod(posterior.Posterior._reading_chance)

    def _reading_chance(self, at, reading, step):
        if not isinstance(reading, Weighed):  # an answer that the look-ahead imagines
            return WeighingPosterior.certain(self, at, reading, step)
        chances = [w * WeighingPosterior.certain(self, at, r, step) for r, w in reading.options]
        return sum(chances) + 1e-9

    def _weigh_stream(self, read, step, likelihood):
        size, root = len(self.topology.services), self._root
        volume = self.log_volume(step)
        whole = volume.sum(1)
        rest = whole - np.where(root >= 0, volume[np.arange(len(root)), root], 0.0)
        for at, reading in read:
            line = (1 - self.task.noise) * volume[:, at] * self.line_chance(at, [reading], step)
            benign = sum(weight for one, weight in reading.options if one.kind == "benign")
            shares = [line / whole, np.where(root == at, 0.0, line / rest)]
            likelihood *= self.task.noise / size * benign + np.stack(shares, 1)


def mean_score(policy, task, split):
    totals = []
    for index in range(INCIDENTS):
        episode = Episode.open(task, split, index)
        policy.open(episode)
        while not episode.done:
            policy.see(episode.act(policy.act()))
        totals.append(episode.score.total)
    return np.mean(totals)


def told(label, policy):
    for split in ("test", "unseen_wording"):
        scores = [mean_score(policy, task, split) for task in TASKS]
        print(f"{label:30} {split:15}", *(f"{one:.3f}" for one in [*scores, np.mean(scores)]))


SETTINGS = chosen()
print("temperature, floor:", *SETTINGS)
told("trace, true readings", scripted.TracePolicy())
told("belief, true readings", BeliefPolicy())
scripted.read_line = likeliest
told("trace, likeliest reading", scripted.TracePolicy())
posterior.read_line = weighed
posterior.Posterior._reading_chance = WeighingPosterior._reading_chance
posterior.Posterior._weigh_stream = WeighingPosterior._weigh_stream
told("belief, readings weighed", BeliefPolicy())
