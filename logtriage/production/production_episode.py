"""An incident of `production` as an episode: it shows what a real one shows, and is scored alike.

The score is that of the root cause alone: 1 when the first service blamed is the root, or, where
nothing is wrong, when the incident is ignored and nobody blamed, fixed or paged. Told apart, and
not scored:

| question | answered by |
|---|---|
| the remedy | the first `remediate`, of the root |
| the team | the first `escalate` |
| how it spread | the services blamed after the root: caller by caller, up to the users |
"""

from collections.abc import Iterable
from typing import Self

from ..play.scoring import Record, Score
from ..real.cases import Case
from ..real.real_episode import RealEpisode, RealIncident, call_graph
from ..world.tasks import check_index
from .production_cases import SPLITS, production_case

PRODUCTION = "production"  # the name of the task


def check_production(split: str, index: int) -> None:
    """Raise `ValueError` where there is no such incident."""
    if split not in SPLITS:
        raise ValueError(
            f"unknown split {split!r:.60} of {PRODUCTION}; choose one of {', '.join(SPLITS)}"
        )
    check_index(index)


class ProductionEpisode(RealEpisode):
    """An incident being played; nothing that is done changes it."""

    notice = (
        "the root cause alone counts, blamed first; then blame, one by one, the services through "
        "which it reached the users; ignore where nothing is wrong"
    )

    @classmethod
    def open(cls, split: str, index: int) -> Self:
        """The incident with that number, from 0; `ValueError` where there is none."""
        check_production(split, index)
        case = production_case(split, index)
        return cls(RealIncident(split, index, case, call_graph(case), PRODUCTION))

    def _judge(self) -> Score:
        record, truth = self.record, self.incident.case.truth
        right = float(finds(record, self.incident.case))
        remedied = bool(truth.root) and record.remediations[:1] == [(truth.remedy, truth.root)]
        paged = bool(truth.root) and record.team == truth.team
        return Score(0.0, right, float(remedied), float(paged), 0.0, 0.0, 1.0, right)


def finds(record: Record, case: Case) -> bool:
    """Whether the root was blamed first, or it was said rightly that nothing is wrong."""
    ignored = record.closed_by == "ignore"
    if not case.truth.root:
        return ignored and not (record.root_causes or record.remediations or record.teams)
    return not ignored and record.root_cause == case.truth.root


def tells_path(blamed: Iterable[str], case: Case) -> bool:
    """Whether the services blamed are the path of the fault, in order, up to the users."""
    return tuple(dict.fromkeys(blamed)) == case.truth.path
