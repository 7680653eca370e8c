"""The score as OpenEnv's tree of rubrics, for who inspects or logs rewards by OpenEnv's means.

The score itself is `play.scoring.score`. It follows from the whole record and from the truth of the
incident, and neither is in an action or an observation: the environment hands the finished score
to `TriageRubric`, which only gives it names.
"""

from __future__ import annotations

from openenv.core.rubrics import Rubric

from .models import TriageAction, TriageObservation
from .play.scoring import Score


class ScorePart(Rubric):
    """One named number of the score; `value` is set by the parent."""

    value = 0.0

    def forward(self, action: TriageAction, observation: TriageObservation) -> float:
        """The number, whatever the last action was."""
        return self.value


class TriageRubric(Rubric):
    """The total, and a child for each part, the cost and the gate: `rubric.root_cause.last_score`.

    Attributes:
        score: the finished score of the episode; None, and a reward of 0, before its end.
    """

    def __init__(self) -> None:
        super().__init__()
        self.score: Score | None = None
        for name in Score._fields[:-1]:
            setattr(self, name, ScorePart())

    def forward(self, action: TriageAction, observation: TriageObservation) -> float:
        """The reward of a step: 0 until the end, then the total."""
        if self.score is None:
            return 0.0
        for name, part in self.named_children():
            part.value = getattr(self.score, name)
            part(action, observation)
        return self.score.total

    def reset(self) -> None:
        """Forget the score; a new episode begins."""
        self.score = None
