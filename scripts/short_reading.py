"""Correct SmolLM2 in its own play, with sheets of log lines and short answers among the episodes.

    python scripts/short_reading.py ADAPTER FOLDER MINUTES POOL

Each batch has an episode that its average weights played, corrected by `belief`, and two sheets. A
sheet has sixteen lines of the wording of `train`; the model says after each what it means, in two
words. The rate falls to 0 over all the time. The same call goes on from a checkpoint. POOL is the
number of the first pool of 32 episodes: a second run that begins after the first has new incidents
and new sheets.
"""

import json
import re
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

from logtriage.world import wording
from logtriage.world.call_graph import OWNERS
from logtriage.world.faults import FAULTS, OWNER
from triagelab.train import imitation
from triagelab.train.grpo import load_to_train
from triagelab.train.imitation import Lessons, OnPolicyImitator
from triagelab.train.settings import TrainingConfig
from triagelab.train.supervised import Example, encode

RATE, AVERAGED = 6e-4, 0.97
SHEETS, LINES, VARIED = 2, 16, 0.85  # per batch, per sheet, share of varied wording
# The share of each kind of line; within it, sections come equally often.
KINDS = {"proof": 0.45, "hint": 0.2, "callee": 0.1, "own": 0.1, "normal": 0.075, "benign": 0.075}
WEIGHT = 0.3  # of a token of a sheet: a batch's sheets weigh about as much as its episode
PROMPT = "Say in two words what each line means."


def name_at(kind: str, random: Random) -> str:
    """A path name of a service of that kind."""
    first, second = random.randint(1, 4), random.randint(1, 2)
    below = {"database": f"db-a{first}-b{second}", "queue": f"queue-a{first}-b{second}"}
    return "edge" if kind == "edge" else below.get(kind, f"app-a{first}")


def line_and_meaning(random: Random) -> tuple[str, str]:
    """A line of the wording of `train`, and what it says: remedy and team, remedy, whom to see."""
    kind = random.choices(list(KINDS), list(KINDS.values()))[0]
    varied = random.random() < VARIED
    book = wording.VARIED_BOOKS[kind] if varied else wording.BOOKS[kind]
    key = random.choice(list(book))
    templates = book[key] if varied else book[key][:-1]  # the last is held out
    name, callee = name_at(key[-1], random), name_at(random.choice(("app", "queue")), random)

    def value(field: re.Match[str]) -> str:
        if field[1] == "callee":
            return callee
        figure = random.randint(10, 99)
        return str(
            random.randint(1, 9) if field[1] == "n" else random.choice((figure, 10 * figure))
        )

    text = random.choice(wording.choices(random.choice(templates)))
    level, _, rest = re.sub(r"{(\w+)}", value, text).partition(" ")
    meaning = "nothing"
    if kind == "callee":
        meaning = f"see {callee}"
    elif kind == "hint":
        meaning = f"{key[0]} perhaps"
    elif kind == "proof":
        fault = FAULTS[key[0]]
        meaning = f"{fault.remedy} {OWNERS[key[-1]] if fault.team == OWNER else fault.team}"
    return f"{level} {name} {rest}", meaning


def sheet(index: int) -> list[dict[str, Any]]:
    """A conversation about some lines."""
    random = Random(f"sheet/{index}")
    messages = [{"role": "system", "content": PROMPT}]
    for _ in range(LINES):
        line, meaning = line_and_meaning(random)
        messages += [{"role": "user", "content": line}, {"role": "assistant", "content": meaning}]
    return messages


class Reader(OnPolicyImitator):
    """An on-policy imitator with sheets in each batch, whose rate falls as its time goes by."""

    minutes = 60.0

    def batches(self) -> list[list[Example]]:
        """The next pool: batches of an episode and two sheets."""
        episodes = [example for batch in super().batches() for example in batch]
        print("played", round(time.perf_counter() - self.began), flush=True)
        first, batches = self.examples * SHEETS, []
        for at, episode in enumerate(episodes):
            numbers = range(first + SHEETS * at, first + SHEETS * (at + 1))
            batches.append([episode, *[self.encoded(sheet(number)) for number in numbers]])
        return batches

    def encoded(self, messages: list[dict[str, Any]]) -> Example:
        """A sheet in tokens."""
        ids, own, targets = encode(self.tokenizer, messages, None)
        return Example(ids, own, [(place, token, WEIGHT) for place, token, _ in targets])

    def learn_pool(self) -> None:
        """Learn from a pool at a rate that falls to 0 by the end of the time."""
        self.began = time.perf_counter()
        super().learn_pool()

    def _backward(self, batch: list[Example]) -> float:
        spent = self.seconds + time.perf_counter() - self.began
        left = max(0.0, 1 - spent / (60 * self.minutes))
        # learn_pool sets the rate after this, from `rate`, with its own warm-up
        self.rate = RATE * left
        return super()._backward(batch)


def main() -> None:
    source, folder, minutes, pool = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
    config = TrainingConfig(model=source, lora_rank=16, lora_alpha=32, seed=0)
    model, tokenizer = load_to_train(config)
    imitation.AVERAGED = AVERAGED
    reader = Reader(model, tokenizer, Lessons(tokenizer, imitation.ON_POLICY, 1))
    reader.minutes, reader.pool = minutes, int(pool)
    if (folder / "state.pt").exists():
        reader.load(folder / "state.pt")
    settings = {"model": source, "lessons": "short-reading", "seed": 1, "first_pool": int(pool)}
    longest = 0.0
    while reader.seconds + longest / 2 < 60 * minutes:
        before = reader.seconds
        reader.learn_pool()
        longest = max(longest, reader.seconds - before)
        imitation._save(reader, folder, settings)
        print(json.dumps(reader.log[-1]), round(reader.seconds), flush=True)


if __name__ == "__main__":
    main()
