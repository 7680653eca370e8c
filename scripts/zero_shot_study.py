"""What SmolLM2 scores as it is, in every way that it could be asked: a study that chooses one.

    python scripts/zero_shot_study.py FILE.json INCIDENTS

Native tools or tools as text; services by their real names or by their paths; without an example or
with one whole episode of `belief` before the incident; free, or with a grammar (native tools only).
The incidents are a slice of `train` that settings are chosen on. One row per episode.
"""

import json
import sys
import time
from pathlib import Path

from tqdm import tqdm

from logtriage.play.conversation import NATIVE, TEXT, Message, Protocol
from logtriage.play.episode import Episode
from logtriage.play.tools import ToolSession
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import TASKS
from triagelab.bench.rollouts import TUNING_INDEX, result_row
from triagelab.language_models.language_models import LanguageModelPolicy
from triagelab.language_models.loading import load_player
from triagelab.language_models.path_names import NAMING, incident_names
from triagelab.language_models.smollm2 import SMOLLM2
from triagelab.reference.belief import BeliefPolicy
from triagelab.train.sft_tasks import transcript

EXAMPLE = TUNING_INDEX - 1  # of `train`: a fault of the first task


def example(protocol: Protocol, paths: bool) -> list[Message]:
    """An expert's whole episode as messages, without the system's."""
    episode = Episode(sample_incident("single_crash", "train", EXAMPLE))
    session = ToolSession(episode, incident_names if paths else None)
    messages = transcript(BeliefPolicy(), session)[1:]
    if protocol is NATIVE:
        return messages
    texts: list[Message] = []
    for message in messages:
        if message["role"] == "tool":
            if texts[-1]["role"] == "user":
                texts[-1]["content"] += f"\n\n{message['content']}"
            else:
                texts.append({"role": "user", "content": message["content"]})
        elif message["role"] == "assistant":
            calls = [json.dumps(call["function"]) for call in message["tool_calls"]]
            written = "\n".join(f"<tool_call>{call}</tool_call>" for call in calls)
            texts.append({"role": "assistant", "content": written})
        else:
            texts.append(dict(message))
    return texts


def asked(protocol: Protocol, paths: bool, shown: bool) -> Protocol:
    """The protocol, with an example before the incident if one is `shown`."""
    between = example(protocol, paths) if shown else []

    def opening(text: str) -> list[Message]:
        system, user = protocol.opening(text)
        return [system, *between, user]

    return protocol._replace(opening=opening) if shown else protocol


def main(path: Path, incidents: int) -> None:
    rows = json.loads(path.read_text()) if path.exists() else []
    done = {row["way"] for row in rows}
    model, tokenizer, _ = load_player(SMOLLM2)
    if "bf16" in sys.argv:
        model.bfloat16()
    for protocol, constrained in ((NATIVE, False), (NATIVE, True), (TEXT, False)):
        for paths in (False, True):
            for shown in (False, True):
                way = (
                    f"{protocol.name}, {'paths' if paths else 'real names'}, "
                    f"{'an example' if shown else 'no example'}, "
                    f"{'constrained' if constrained else 'free'}"
                )
                if way in done:
                    continue
                began = time.perf_counter()
                model.config.path_names = NAMING if paths else None
                policy = LanguageModelPolicy(
                    model,
                    tokenizer,
                    way,
                    turn_tokens=128,
                    protocol=protocol,
                    constrained=constrained,
                )
                spoken = asked(protocol, paths, shown)
                if protocol is TEXT:
                    policy.protocol = spoken._replace(name="text")
                else:
                    policy.protocol = spoken
                episodes = [
                    Episode(sample_incident(task, "train", TUNING_INDEX + i))
                    for task in TASKS
                    for i in range(incidents)
                ]
                for played in tqdm(policy.play_each(episodes, 12), way, len(episodes)):
                    row = result_row(played, way)
                    row["way"] = way
                    row["turns"] = sum(m["role"] == "assistant" for m in played.messages)
                    rows.append(row)
                path.write_text(json.dumps(rows, default=str))
                mine = [row for row in rows if row["way"] == way]
                mean = sum(row["score"] for row in mine) / len(mine)
                print(f"{way}: {mean:.3f}, {time.perf_counter() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
