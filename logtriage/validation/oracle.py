"""The oracle: plays the incident of runtime.json on a server rightly, and prints the reward."""

import json
import sys
from pathlib import Path

from logtriage.client import LogtriageEnv
from logtriage.models import TriageAction
from logtriage.play.episode import Episode
from logtriage.policies.scripted import OraclePolicy

plan = json.loads(Path(__file__).with_name("runtime.json").read_text())["reset"]
episode = Episode.open(**plan["options"], index=plan["seed"])
OraclePolicy().play([episode])
right = [action for action, _ in episode.history if action]

address = sys.argv[1] if sys.argv[1:] else "http://127.0.0.1:8000"
with LogtriageEnv(base_url=address).sync() as env:
    env.reset(seed=plan["seed"], **plan["options"])
    for action in right:
        result = env.step(TriageAction(action_type=action.type, value=action.value))
print(result.reward)
