"""Write GALLERY.md from the generator; a test holds it fresh."""

from pathlib import Path

from logtriage.play.actions import Action
from logtriage.play.episode import Episode
from logtriage.play.observation import render
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import SPLITS, TASKS

ROOT = Path(__file__).resolve().parents[1]


def gallery_text() -> str:
    """GALLERY.md: one opening of each task, a detail of its root, the truth, and the same task in
    the other splits.
    """
    parts = [
        "# Gallery",
        (
            "Real samples of the generator, written by `make results`; a test holds them fresh. "
            "Each block is all that an agent sees."
        ),
    ]
    for name, task in TASKS.items():
        parts.append(f"## {name.replace('_', ' ')}")
        parts.append(
            f"{task.max_steps} steps; at least {task.noise:.0%} of the streamed lines are noise."
        )
        for index in (0, 1):
            episode = Episode(sample_incident(name, "train", index))
            incident = episode.incident
            parts.append(
                f"`train/{index}`\n\n```text\n{render(episode.opening, incident.topology)}\n```"
            )
            if incident.injection is None:
                parts.append("Truth: a false alarm; P3, and `ignore`.")
                continue
            detail = render(episode.act(Action("request_more_logs", (incident.root,))))
            parts.append(f"Asking `{incident.root}`:\n\n```text\n{detail}\n```")
            parts.append(
                f"Truth: {incident.severity}, {incident.injection.fault.name} at `{incident.root}`;"
                f" {incident.remedy}, page {incident.team}."
            )
    parts.append("## The other splits")
    for split, meaning in SPLITS.items():
        if split.startswith("unseen"):
            incident = sample_incident("cascading_failure", split, 0)
            lines = "\n".join(Episode(incident).opening.lines)
            parts.append(
                f"`{split}`: {meaning}. Lines of"
                f" `cascading_failure/{split}/0`:\n\n```text\n{lines}\n```"
            )
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    (ROOT / "GALLERY.md").write_text(gallery_text())
