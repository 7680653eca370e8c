"""Play one incident from a shell, by a call of `incident` for each action: `incident escalate dba`.

Nothing runs between two calls. An episode is a pure function of the incident's coordinates and the
actions, so each call replays the journal, a file of the actions so far, and adds its own. The
player must be able to read neither this code nor the coordinates: the truth follows from them.
"""

import fcntl
import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from logtriage.play.actions import Action
from logtriage.play.episode import Episode, final_score
from logtriage.play.observation import CLOSED, render
from logtriage.play.tools import described_tools

HELP = ("help", "-h", "--help")
SCORE = "score"  # closes the incident, and prints its score
# What is read of a call; no action has more words, and no name has as many characters.
MOST_WORDS, MOST_CHARACTERS = 4, 100


def usage() -> str:
    """The calls, one per line."""
    lines = ["`incident` shows all that was shown so far. Every other call is a step:"]
    for tool, does, arguments in described_tools():
        call = " ".join(["incident", tool, *map(str.upper, arguments)])
        meanings = [f"{name.upper()}: {meaning}" for name, meaning in arguments.items()]
        lines.append(" ".join([f"- `{call}`: {does}", *meanings]))
    return "\n".join(lines)


def take(episode: Episode, words: Sequence[str]) -> str:
    """Do what a call's words ask, and return what to print."""
    if words[0] == SCORE:
        episode.abandon()
        score = final_score(episode)._asdict()
        return json.dumps({"reward": score.pop("total"), **score})
    if episode.done:
        return CLOSED
    return render(episode.act(Action.parse(words[0], ":".join(words[1:]))))


def main(coordinates: Path) -> None:
    """Answer one call. The command line is the journal's path, then the words of the call. The
    coordinates are in a JSON file: if they were arguments, `ps` would show them.
    """
    path, *given = sys.argv[1:]
    words = [word[:MOST_CHARACTERS] for word in given[:MOST_WORDS]]
    episode = Episode.open(**json.loads(coordinates.read_text()))
    answers = [usage(), render(episode.opening, episode.incident.topology)]
    with open(path, "a+", encoding="utf-8") as journal:
        fcntl.flock(journal, fcntl.LOCK_EX)  # two calls at once are two steps
        journal.seek(0)
        for line in journal:
            with suppress(json.JSONDecodeError):  # half a line: that call was never answered
                answers.append(take(episode, json.loads(line)))
        if words and words[0] not in HELP:
            if not episode.done:
                journal.write("\n" + json.dumps(words))
                journal.flush()
            answers = [take(episode, words)]
    print("\n\n".join(answers))  # printed last, so that only what was written is answered
