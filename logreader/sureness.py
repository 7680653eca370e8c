"""How sure it is that the first suspect is the root: a probability, and what speaks against it."""

from collections import Counter
from collections.abc import Sequence
from math import exp, log

from logtriage.play.actions import visible

from .causes import UNREACHABLE, UNRESOLVED
from .evidence import Evidence, ServiceEvidence, Trouble, accusers, changes
from .levels import FATAL, WARN
from .log import Log
from .suspects import FEW, Findings, Suspect
from .tally import UNNAMED, Shape, Tally, speakers_of
from .words import WORDS, any_of

LIKELY, POSSIBLE, UNSURE = "likely", "possible", "not enough evidence"
LIKELY_FROM, POSSIBLE_FROM = 0.8, 0.5  # the probabilities from which an answer is called so
# How often answers on `train` are right that have a chance of 0.6, whatever speaks against them, or
# of 0.9, if nothing does: `python -m calibration train` prints it.
OFTEN_FROM, OFTEN = 0.6, 0.74
ALMOST_SURE_FROM, ALMOST_SURE = 0.9, 0.98
NO_TROUBLE = "no line tells of trouble"
LITTLE_TROUBLE = "few lines tell of trouble; if there was any, give more of the log"
NO_BEFORE = "no stretch of the log is unlike the rest of it; give more of the time before"
MOST_UNTIMED = 0.1  # share of a file's records that may lack a time before its clock is in doubt
MANY = 200  # records from which an error is nothing special
LEAST_TROUBLE = 0.2  # share of trouble from which a log without a calm stretch is no calm one
RECOVERED = 6  # lines after the last error from which a service works again
# Words for the first suspect's share: a percentage beside the confidence would confuse.
PORTIONS = {"nearly all": 0.9, "most": 0.6, "about half": 0.4, "a part": 0.0}
Row = tuple[int, Shape, int]  # see `Tally.lines`
NOT_SAID = any_of([WORDS["speakers"]["compose"], WORDS["speakers"]["stack"]])
# Weights of the log-odds that the first suspect is right. They were fitted to logs that the
# simulator made of incidents of `train`; results/own-logs.md tells how they fare on others.
OWN_CAUSE, BLAMED, NEXT, GAIN = 1.6, 1.1, -2.5, 0.85
MOST_GAIN = 80.0  # gain beyond which a window is no clearer
TIE = 0.9  # share of the first suspect's share from which another ties with it
NEAR = 0.45  # if the next suspect has more than this of the first's share, neither is sure


def sureness_of(log: Log, findings: Findings) -> tuple[str, float, str]:
    """Return how sure the answer is, in words and as a probability, and why."""
    if not log.tally.records:
        return UNSURE, 0.0, "no line could be read"
    if not findings.suspects:
        unnamed = findings.evidence.get(UNNAMED)
        why = "the log does not say who speaks" if unnamed and unnamed.troubles else NO_TROUBLE
        return UNSURE, 0.0, why
    first = findings.suspects[0]
    own = findings.evidence[first.service]
    complaining = accusers(first.service, findings.evidence)
    if client := cut_off(findings.suspects, findings.evidence, log.tally):
        client = "the client" if client == UNNAMED else client
        why = f"the network between {client} and {first.service}, or either end"
        return UNSURE, 0.0, why
    if _only_warned(log.tally) and len(complaining) < 2:
        return UNSURE, 0.0, LITTLE_TROUBLE
    if findings.window is None:
        chance = confidence_without_before(findings.suspects, findings.evidence)
        if _mostly_calm(log, findings):
            return UNSURE, 0.0, LITTLE_TROUBLE
        if log.tally.records < FEW and _alone(findings):
            chance = max(chance, POSSIBLE_FROM)
        if chance < POSSIBLE_FROM:
            return UNSURE, 0.0, NO_BEFORE
        before = "trouble from the first line on" if _at_once(log) else "few calm lines come before"
        return POSSIBLE, chance, f"{before}, so nothing shows what is usual"
    chance = confidence(findings.suspects, findings.evidence, findings.window.gain)
    if chance < POSSIBLE_FROM:
        near = " or ".join(suspect.service for suspect in findings.suspects[:2])
        return UNSURE, chance, f"too little tells that it began at {near}"
    why = f"{portion(first.share)} of what is wrong comes down to it"
    if own.silent:
        why += ", and it fell silent"
    against = [*limits(log), *doubts(findings.suspects, findings.evidence)]
    if not (proven(log) or log.tally.known or complaining):
        against.append("its names may be no services")
    explained = own.cause or any(trouble.happened.name for trouble in own.troubles)
    if not (complaining or explained):
        against.append("nobody complains of it, and no line tells a cause")
    against += [
        f"{service} changed shortly before: {visible(line, 60)}"
        for service, line in changes(log.tally, findings.window).items()
        if service != first.service
    ]
    if against:
        return POSSIBLE, min(_earned(chance), OFTEN), f"{why}, but {against[0]}"
    return LIKELY if chance >= LIKELY_FROM else POSSIBLE, _earned(chance), why


def portion(share: float) -> str:
    """Put a share of all that is wrong into words."""
    return next(words for words, least in PORTIONS.items() if share >= least)


def confidence(suspects: Sequence[Suspect], evidence: Evidence, gain: float) -> float:
    """Return the probability that the first suspect is the root; `gain` is that of the window."""
    if not suspects:
        return 0.0
    first = suspects[0]
    cause = evidence[first.service].cause
    blamed = bool(accusers(first.service, evidence))
    behind = suspects[1].share / first.share if len(suspects) > 1 else 0.0
    clear = log(min(gain, MOST_GAIN) / 10.0)
    odds = OWN_CAUSE * cause + BLAMED * blamed + NEXT * behind + GAIN * clear
    return min(1.0 / (1.0 + exp(-odds)), 1.0 / tied(suspects))


def confidence_without_before(suspects: Sequence[Suspect], evidence: Evidence) -> float:
    """Return the probability that the first suspect is the root where no calm stretch shows what is
    usual: by what it says of itself, and by who complains of it.
    """
    first = evidence[suspects[0].service]
    causes = [(trouble.happened, trouble.names) for trouble in first.troubles]
    complains = any(trouble.of_another for trouble in first.troubles)  # and may have ended for that
    own = any(cause.own and not (names or (cause.vague and complains)) for cause, names in causes)
    blamed = accusers(first.name, evidence)
    chance = (0.7 if blamed else 0.6) if own else 0.55 if blamed else 0.3
    return min(chance, 1.0 / tied(suspects))


def tied(suspects: Sequence[Suspect]) -> int:
    """Return how many suspects nothing tells from the first, itself among them."""
    return sum(suspect.share >= TIE * suspects[0].share for suspect in suspects)


def _earned(chance: float) -> float:
    """Return how often answers with such a chance are right; a chance below 0.6 is as it says."""
    if chance >= ALMOST_SURE_FROM:
        return ALMOST_SURE
    return max(chance, OFTEN) if chance >= OFTEN_FROM else chance


def cut_off(suspects: Sequence[Suspect], evidence: Evidence, tally: Tally) -> str:
    """Return who may be cut off from the first suspect; empty if nobody may: a client that alone
    speaks and says that it can reach nobody, or several that cannot reach what has no name, or not
    resolve different names, while nobody tells what it died of.
    """
    first = suspects[0].service
    apart = [name for name, own in evidence.items() if any(map(_unreachable, own.troubles))]
    unresolved = {name: lacks for name, own in evidence.items() if (lacks := _unresolved(own))}
    shared = sum(map(len, unresolved.values())) > len(set().union(*unresolved.values()))
    if len(unresolved) > 1 and not shared and not evidence[first].cause:
        apart = [*unresolved]
    if len(apart) > 1 and not evidence[first].died:
        return " and ".join(apart)
    speakers = speakers_of(tally)
    if len(speakers) > 1 or first in speakers:
        return ""
    (client,) = speakers
    names = evidence[client].names
    happened = {trouble.happened.name for trouble in evidence[client].troubles}
    lost = UNREACHABLE in happened or (len(names) > 1 and UNRESOLVED.name in happened)
    return client if lost else ""


def _unresolved(service: ServiceEvidence) -> set[str]:
    """The names that a service cannot resolve; an internet site has none, and counts as empty."""
    lines = [trouble for trouble in service.troubles if trouble.happened == UNRESOLVED]
    return {name for trouble in lines for name in (trouble.names or [""])}


def _unreachable(trouble: Trouble) -> bool:
    """Whether a line of trouble tells that the network has no way to what has no name."""
    return trouble.happened.name == UNREACHABLE and not trouble.names


def doubts(suspects: Sequence[Suspect], evidence: Evidence) -> list[str]:
    """List what in the evidence casts doubt on the first suspect."""
    first, reasons = evidence[suspects[0].service], []
    own = [accuser for accuser in accusers(first.name, evidence) if accuser.own_share > 0.5]
    if not (first.troubles or first.silent):
        reasons.append("it has no unusual line of its own")
    elif all(trouble.symptom for trouble in first.troubles) and not first.silent:
        reasons.append("its lines tell only what others do to it")
    elif {trouble.level for trouble in first.troubles} <= {WARN} and not (
        first.cause or first.silent
    ):
        reasons.append("it has only warnings")
    elif own and not first.cause:
        reasons.append(f"{own[0].name}, which complains of it, has trouble of its own")
    if len(suspects) > 1 and suspects[1].share > NEAR * suspects[0].share:
        reasons.append(f"{suspects[1].service} is in trouble, too")
    return reasons


def proven(log: Log) -> bool:
    """Whether those who speak are surely services."""
    return all(file.layout.proven for file in log.files if file.records)


def limits(log: Log) -> list[str]:
    """List the flaws of a log that make every suspect uncertain."""
    flaws = ["only one service speaks"] if len(speakers_of(log.tally)) < 2 else []
    if log.tally.records < FEW:
        flaws.append("the log has few lines")
    read = [file for file in log.files if file.records]
    clocks = {(file.layout.zoned, *file.layout.periods[:1]) for file in read}
    if len(clocks) > 1 or any(file.untimed > MOST_UNTIMED * file.records for file in read):
        flaws.append("some of its lines have no time, date or zone")
    return flaws


def _mostly_calm(log: Log, findings: Findings) -> bool:
    """Whether little in a log is trouble, and in it nothing dies that does not work again. In a
    short log, a line by which the first suspect tells what has happened to itself is enough.
    """
    said = _said(log.tally)
    if _recovered(log, said, findings.suspects[0].service):
        return True
    lines = Counter[int]()
    for _, shape, count in said:
        lines[shape.level] += count
    trouble = sum(count for level, count in lines.items() if level >= WARN)
    if lines[FATAL] or trouble >= LEAST_TROUBLE * lines.total():
        return False
    own = any(trouble.cause for trouble in findings.evidence[findings.suspects[0].service].troubles)
    return not own or log.tally.records >= MANY


def _alone(findings: Findings) -> bool:
    """Whether the only suspect tells errors of several kinds, and nothing of what others do."""
    own = findings.evidence[findings.suspects[0].service]
    errors = [trouble for trouble in own.troubles if trouble.level > WARN]
    return len(findings.suspects) == 1 and len(errors) > 1 and own.own_share == 1.0


def _said(tally: Tally) -> list[Row]:
    """Return the rows of a tally but for calm lines of compose and of stack traces."""
    said = [shape.level >= WARN or not NOT_SAID.match(shape.example) for shape in tally.shapes]
    return [(second, tally.shapes[n], count) for second, n, count in tally.rows() if said[n]]


def _only_warned(tally: Tally) -> bool:
    """Whether nothing is worse than a warning in a log of few lines."""
    return tally.records < MANY and max(shape.level for _, shape, _ in tally.lines()) <= WARN


def _recovered(log: Log, rows: Sequence[Row], service: str) -> bool:
    """Whether a service prints calm lines after the last error, as one does that was started before
    what it needs and then again. Names that may be no services are of parts of one, unless it died.
    """
    tally = log.tally
    bad = [(second, shape.level) for second, shape, _ in rows if shape.level > WARN]
    last, died = max(bad, default=(-1, 0))[0], any(level == FATAL for _, level in bad)
    parts = set() if proven(log) or died else {*tally.services} - {UNNAMED}
    later = [(shape, count) for second, shape, count in rows if second > last]
    own = [lines for shape, lines in later if tally.services[shape.service] in {service, *parts}]
    return sum(own) >= RECOVERED


def _at_once(log: Log) -> bool:
    """Whether no line comes before the first one of trouble."""
    rows = [*log.tally.lines()]
    troubled = [second for second, shape, _ in rows if shape.level >= WARN]
    return min(troubled, default=0) <= min(second for second, _, _ in rows)
