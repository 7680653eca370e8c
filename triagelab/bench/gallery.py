"""Real samples of the generator, for docs/GALLERY.md."""

from logtriage.play.actions import Action
from logtriage.play.episode import Episode
from logtriage.play.observation import render
from logtriage.world.tasks import SPLITS, TASKS

from .plots import words

INTRODUCTION = """\
# Gallery

Real samples of the generator, written by `make results`; a test holds them fresh. \
Each block is all that an agent sees."""


def gallery_text() -> str:
    """The text of the gallery: two incidents of each task, and one task in the other splits."""
    parts = [INTRODUCTION]
    for name, task in TASKS.items():
        noise = f"at least {task.noise:.0%} of the streamed lines are noise"
        parts.append(f"## {words(name)}\n\n{task.max_steps} steps; {noise}.")
        parts += [sample(name, index) for index in (0, 1)]
    parts.append("## The other splits")
    for split in (split for split in SPLITS if split.startswith("unseen")):
        lines = "\n".join(Episode.open("cascading_failure", split, 0).opening.lines or ())
        where = f"Lines of `cascading_failure/{split}/0`"
        parts.append(f"`{split}`: {SPLITS[split]}. {where}:\n\n{block(lines)}")
    return "\n\n".join(parts) + "\n"


def sample(task: str, index: int) -> str:
    """An incident of `train`: its opening, the logs of its root, and the truth."""
    episode = Episode.open(task, "train", index)
    incident = episode.incident
    opening = f"`train/{index}`\n\n{block(render(episode.opening, incident.topology))}"
    if incident.injection is None or incident.root is None:
        return f"{opening}\n\nTruth: a false alarm; P3, and `ignore`."
    logs = render(episode.act(Action("request_more_logs", (incident.root,))))
    fault = f"{incident.injection.fault.name} at `{incident.root}`"
    answers = f"{incident.severity}, {fault}; {incident.remedy}, page {incident.team}."
    return f"{opening}\n\nAsking `{incident.root}`:\n\n{block(logs)}\n\nTruth: {answers}"


def block(text: str) -> str:
    return f"```text\n{text}\n```"
