"""Find who speaks in the lines of a file, by evidence rather than by a list of formats.

Every place where lines could name their speaker is tried on a sample: the first words, those after
the time, those after the level, and every field. A good place divides the lines among few names.
Each name occurs often, has many different things to say, and is named in the lines of others.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from .levels import LEVELS
from .names import PLATFORM, REPLICA, Namer, service_name, shared_prefix, targets
from .objects import KeyPath
from .words import WORDS, word_of

MOST_NAMES = 100  # names that a place may have in a sample
ENOUGH = 3.0  # score that a place needs to be taken
COLUMN = 2.0  # score of a place that is a column, filled up with blanks
MOST_WORDS = 10  # words to try from the start of a line, or after its time
MOST_TEXT = 400  # bytes of a line that are read
MOST_COMPARED = 300  # lines that are searched for the names of others
HEAD_SHARE = 0.8  # share of the lines that have a head, for it to count
PIPED_SHARE = 0.6  # of a container's head, among which are lines of compose and wrapped ones
VARIED = 4  # different things that a name with much to say has said
OFTEN, TWICE = 3, 2  # lines that a name should have; fewer are enough where it is surely a service

NAME = re.compile(r"^[A-Za-z][A-Za-z0-9_.@$-]{1,59}$")
ID = re.compile(WORDS["speakers"]["id"])
NO_NAMES = word_of(WORDS["speakers"]["nobody"])
THREAD, CLASS, HOST, SERVICE_WORD = (
    re.compile(WORDS["speakers"][name]) for name in ("thread", "class", "host", "kind")
)
DOTTED = re.compile(r"^\w++(?:\.\w++){2,}$")  # a class with its package
HEADS = [re.compile(head.encode()) for head in WORDS["speakers"]["heads"]]
COMPOSE = re.compile(WORDS["speakers"]["compose"].encode())
# What a field's name tells: that the field names services and nothing else, or never does.
TELLING, UNKNOWN = 2.0, 1.0
PRIORS = {"speaker": TELLING, "unlikely": 0.0, "other": -9.0}
KEY_PRIOR = {word: PRIORS[kind] for kind, words in WORDS["keys"].items() for word in words.split()}


class Place(NamedTuple):
    """A place where a line, without its time, may name its speaker."""

    pattern: re.Pattern[bytes]  # its first group is the name
    prior: float  # score that the place has beforehand
    before_time: bool = False
    proven: bool = False  # whether its names are certain to be services


class Headed(NamedTuple):
    """A line without its time, and where the time stood."""

    text: bytes
    begin: int  # -1 if it had none


_WORD, _SIGNS = rb"[A-Za-z0-9_][\w.@$-]*+", rb"[^\w@$]++"
_NAME = rb"(%s)(?!=)" % _WORD  # and not the key of a field
_LEVEL = b"|".join(word.encode() for word in sorted(LEVELS, key=len, reverse=True))
STATED = re.compile(rb"(?i)\W*(?:%s)\b" % _LEVEL)
FIELD = re.compile(rb"(?<![\w.@-])([A-Za-z_@][\w.@-]{1,40})=")


def places(sample: Sequence[Headed]) -> list[Place]:
    """Return all places to try in lines of text: words at the start or after the level, fields."""
    heads = [(b"", MOST_WORDS), (rb"(?i:.{0,100}?\b(?:%s)\b)" % _LEVEL, 2)]
    candidates = [
        Place(re.compile(rb"%s[^\w@$]*(?:%s%s){%d}%s" % (head, _WORD, _SIGNS, words, _NAME)), 0.0)
        for head, most in heads
        for words in range(most)
    ]
    keys = Counter(key for line in sample for key in set(FIELD.findall(line.text)))
    for key, lines in keys.items():
        if 2 * lines >= len(sample):
            pattern = re.compile(rb"(?:.{0,300}?[^\w.@-])?%s=[\"']?([\w./@$-]+)" % re.escape(key))
            candidates.append(Place(pattern, key_prior(key.decode())))
    return candidates


def key_prior(key: str) -> float:
    """Score how likely a field names the speaker, by its name; of a path, by its last part."""
    parts = re.sub(r"[_-]", "", key.lower()).split(".")
    return KEY_PRIOR.get("".join(parts[-2:]), KEY_PRIOR.get(parts[-1], UNKNOWN))


def best_place(
    sample: Sequence[Headed], known: Collection[str], least: float = 0.0
) -> Place | None:
    """Return where lines name their speaker, if it scores over `ENOUGH` + `least`."""
    best, most = None, ENOUGH + least
    sample = [Headed(line.text[:MOST_TEXT], line.begin) for line in sample]
    lines = [line.text.decode("utf-8", "replace") for line in sample]
    for place in places(sample):
        matches = [place.pattern.match(line.text) for line in sample]
        names = [match[1].decode("utf-8", "replace") if match else "" for match in matches]
        pairs = zip(matches, sample, strict=True)
        ahead = sum(bool(match and match.end() <= line.begin) for match, line in pairs)
        before = 2 * ahead > len(sample)
        score, proven = score_of(names, lines, known, place.prior)
        score += before
        if score > most - COLUMN - 2.0:
            score += _signs([*filter(None, matches)])
        if score > most:
            best, most = place._replace(before_time=before, proven=proven), score
    return best


def place_of(
    lines: Sequence[Headed], timed: Sequence[Headed], known: Collection[str], least: float = 0.0
) -> Place | None:
    """Return where lines name their speaker: a head that most have (or most of those with a time)
    and that tells several names, or a sure head with one name, or the best place in lines with a
    time, or any head with one name. Lines of compose need no head.
    """
    all_own, timed_own = (
        [line for line in some if not COMPOSE.match(line.text)] for some in (lines, timed)
    )
    tried = [(_as_head(all_own, head), _as_head(timed_own, head)) for head in HEADS]
    heads = [place for in_all, in_timed in tried if (place := in_all or in_timed)]
    several = [place for place in heads if place.prior > 1.0]
    sure = [tried[0][0], *(in_timed for _, in_timed in tried[1:-1])]
    head = next(filter(None, [*several, *sure]), None)
    return head or best_place(timed, known, least) or next(iter(heads), None)


def _as_head(lines: Sequence[Headed], pattern: re.Pattern[bytes]) -> Place | None:
    """Return a head as a place if nearly all lines have it; its prior is the number of names."""
    matches = {line: match for line in lines if (match := pattern.match(line.text))}
    names = {service_name(match[1]) for match in matches.values()}
    wrong = [name for name in names if name.lower() in LEVELS or no_name(name)]
    share = PIPED_SHARE if pattern is HEADS[0] else HEAD_SHARE
    if not names or wrong or len(names) > MOST_NAMES or len(matches) < share * len({*lines}):
        return None
    if pattern is HEADS[-1] and all(map(DOTTED.match, names)):
        return None
    ahead = sum(match.end(1) <= line.begin for line, match in matches.items())
    first = pattern is HEADS[0] or 2 * ahead > len(matches)
    return Place(pattern, float(len(names)), first, pattern is not HEADS[-1])


def no_name(name: str) -> bool:
    """Whether a word is an ordinary one, or the number of a request, and never a service."""
    return bool(NO_NAMES.match(name) or ID.match(name))


def _signs(matches: Sequence[re.Match[bytes]]) -> float:
    """Score what follows a place: after a header, every line has the same sign, a level, or its
    next word in one column.
    """
    rest = [match.string[match.end() :] for match in matches]
    texts = [text.lstrip() for text in rest if text]
    enough = 0.9 * max(1, len(texts))
    signs = Counter(text[:1] for text in texts if text and not text[:1].isalnum())
    levels = sum(bool(STATED.match(text)) for text in texts)
    signed = float(max(signs.values(), default=0) >= enough) + float(levels >= enough)
    return signed + COLUMN * _padded([match.end() for match in matches], rest)


def _padded(ends: Sequence[int], rest: Sequence[bytes]) -> bool:
    """Whether blanks fill names up to one column, which only longer names exceed."""
    begins = [end + len(text) - len(text.lstrip()) for end, text in zip(ends, rest, strict=True)]
    [(column, lines)] = Counter(begins).most_common(1)
    lengths = {end for end, begin in zip(ends, begins, strict=True) if begin == column}
    return len(lengths) > 1 and 2 * lines > len(ends) and min(begins) == column


def best_key(
    records: Sequence[Mapping[KeyPath, str]], texts: Sequence[str], known: Collection[str]
) -> tuple[list[KeyPath], bool]:
    """Return the fields that name the speaker, best first; and whether it is surely a service."""
    keys = Counter(key for record in records for key in record)
    good = []
    for key, count in keys.items():
        prior = key_prior(".".join(key))
        if count < 0.3 * len(records) or prior < -1.0:
            continue
        pairs = zip(records, texts, strict=True)
        values, lines = zip(*[(row[key], text) for row, text in pairs if key in row], strict=True)
        score, proven = score_of(values, lines, known, prior)
        score += count / len(records)
        if score >= ENOUGH:
            good.append((score, key, proven))
    good.sort(key=lambda entry: -entry[0])
    return [key for _, key, _ in good], bool(good) and good[0][2]


def score_of(
    values: Sequence[str], lines: Sequence[str], known: Collection[str], prior: float = 0.0
) -> tuple[float, bool]:
    """Score how well a place divides lines among speakers, as `prior` plus a number from below 0 to
    about 7, and tell whether it surely names services. `values` stand at the place in each line.
    """
    spelled = {value: service_name(value) for value in set(values)}
    for value, name in spelled.items():
        if not NAME.match(name) or name.lower() in LEVELS or no_name(name):
            spelled[value] = ""
    names = [spelled[value] for value in values]
    counts = Counter(filter(None, names))
    said = sum(counts.values())
    if not said or len(counts) > MOST_NAMES or said < 0.5 * len(lines):
        return -9.0, False

    def share(holds: Callable[[str], object]) -> float:
        """The share of the lines with a name for which `holds` is true."""
        return sum(count for name, count in counts.items() if holds(name)) / said

    often = share(lambda name: counts[name] >= min(OFTEN, len(lines)))
    score = 2.0 * said / len(lines) + 2.0 * often - 2.0
    score += 1.0 if len(counts) > 1 else -1.0
    score = score - 3.0 * share(THREAD.search) - 2.0 * share(CLASS.search) - share(HOST.search)
    graph, platform = share(lambda name: name in known), share(PLATFORM.match)
    score += 5.0 * graph + 2.0 * platform
    if score + 4.0 < ENOUGH:
        return prior + score, False
    named, called = _named_by_others(names, lines)
    proven = called or graph > 0.0 or platform > 0.0 or prior >= TELLING
    proven = proven or share(SERVICE_WORD.search) > 0.5
    if proven:
        score += 2.0 * (share(lambda name: counts[name] >= min(TWICE, len(lines))) - often)
    return prior + score + _variety(names, values, lines) + 2.0 * named, proven


def _variety(names: Sequence[str], values: Sequence[str], lines: Sequence[str]) -> float:
    """Score from -0.5, if the same words follow each name, to 1, if all names have much to say."""
    after: dict[str, set[str]] = defaultdict(set)
    for name, value, line in zip(names, values, lines, strict=True):
        if name and len(after[name]) < VARIED:
            words = line[line.find(value) + len(value) :].split(None, 8)[:8]
            after[name].add(" ".join(word for word in words if word.isalpha())[:60])
    many = sum(len(said) == VARIED for said in after.values())
    return 1.5 * many / len(after) - 0.5 if after else 0.0


def _named_by_others(names: Sequence[str], lines: Sequence[str]) -> tuple[float, bool]:
    """Score how many names the lines of others name or call, and tell if this proves services."""
    prefix = shared_prefix([name for name in names if name])
    plain = [REPLICA.sub("", name).removeprefix(prefix) for name in names]
    known, replicas = set(filter(None, plain)), {name for name in names if REPLICA.search(name)}
    if len(known) < 2:
        return 0.0, False
    namer, exact = Namer(known), Namer(replicas)
    named, called = set[str](), set[str]()
    numbered = False  # whether the line of another names a single replica
    step = max(1, len(lines) // MOST_COMPARED)
    for name, own, line in list(zip(names, plain, lines, strict=True))[::step]:
        others = set(namer.all(line)) - {own} if own else set()
        named |= others
        called |= others & set(targets(line, known)) if others else set()
        numbered = numbered or bool({*exact.all(line)} & replicas - {name})
    share = 0.5 * (len(named) + len(called)) / len(known)
    return share + 1.5 * numbered, bool(called) or 3 * len(named) >= len(known)
