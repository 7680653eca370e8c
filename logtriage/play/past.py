"""An incident that is over: what can be asked about it is on record, and nothing done changes it.

Remedies and pages are noted, and nobody acts on them.
"""

from __future__ import annotations

from .actions import Action, check_action
from .episode import ENDED, Observation, VisibleIncident
from .scoring import Record, Score


class PastEpisode:
    """A `PlayableEpisode` over what was recorded. Subclasses say what a question brings, and what
    the answers were worth.

    Args:
        incident: what may be known of it.
        opening: what is shown first.

    Attributes:
        record, score, done: as of `Episode`; a score of None is no score, where the truth is not
            known.
    """

    def __init__(self, incident: VisibleIncident, opening: Observation) -> None:
        self.incident, self.opening = incident, opening
        self.record, self.done = Record(), False
        self.score: Score | None = None

    def asked(self, service: str) -> Observation:
        """What a question for more logs of a service, or of all, brings: of the observation only
        its rows, its lines and its notice count.
        """
        raise NotImplementedError

    def judged(self) -> Score | None:
        """The score, once closed; None where the truth is not known."""
        return None

    def act(self, action: Action) -> Observation:
        """See `Episode.act`."""
        if self.done:
            raise ValueError(ENDED)
        try:
            check_action(action, self.incident.topology)
        except ValueError as error:
            return self.refuse(str(error))
        action_type, args, confidence = action
        value = args[0] if args else ""
        if action_type == "request_more_logs":
            return self._stepped(self.asked(value))
        record = self.record
        if action_type == "classify_severity":
            record.severity = record.severity or value
            notice = f"severity noted: {value}"
        elif action_type == "identify_root_cause":
            if not record.root_causes:
                record.confidence = confidence
            record.root_causes.append(value)
            notice = f"root cause noted: {value}"
        elif action_type == "escalate":
            record.teams.append(value)
            notice = f"paged {value}"
        elif action_type == "remediate":
            remedy, service = args
            record.remediations.append((remedy, service))
            notice = f"did {remedy} on {service}"
        else:
            if action_type == "ignore":
                record.confidence = confidence
            record.closed_by, notice = action_type, f"closed by {action_type}"
        return self._stepped(Observation(0, 0, notice=notice))

    def refuse(self, error: str) -> Observation:
        """See `Episode.refuse`."""
        if self.done:
            raise ValueError(ENDED)
        return self._stepped(Observation(0, 0, error=error))

    def abandon(self) -> None:
        """See `Episode.abandon`."""
        if not self.done:
            self.record.closed_by = "timeout"
            self._close()

    def leave(self) -> None:
        """See `Episode.leave`."""

    def _stepped(self, brought: Observation) -> Observation:
        record, most = self.record, self.opening.max_steps
        record.steps += 1
        if record.closed_by is None and record.steps >= most:
            record.closed_by = "timeout"
        if record.closed_by is not None:
            self._close()
        return brought._replace(step=record.steps, max_steps=most, done=self.done)

    def _close(self) -> None:
        self.done = True
        self.score = self.judged()
