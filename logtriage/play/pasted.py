"""An incident of which there is only text: lines that somebody pasted.

Nothing is simulated, and nothing scored. A line is taken for one of the service that it names
first, and questions for more logs are answered by those.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..world.call_graph import CallGraph
from ..world.tasks import TASKS, Task
from ..world.topology import DEFAULT_TOPOLOGY
from .actions import ALL_SERVICES
from .episode import Observation
from .recorded import RecordedEpisode

SHOWN = 20  # of the last lines, in the opening; about what an incident of the simulator opens with
TOLD = 12  # of a service's last lines, in answer to a question
HEADERS = ("step ", "calls: ")  # lines of the simulator's own text that every opening has anyway


@dataclass(frozen=True)
class PastedIncident:
    """What is known of it: the call graph that it is read by. The rest stands in for what a
    simulated incident has.
    """

    topology: CallGraph
    task: Task = field(default=TASKS["cascading_failure"])
    split: str = "pasted"
    index: int = 0


class PastedEpisode(RecordedEpisode):
    """Pasted lines as an episode, without a score.

    Args:
        text: the lines, in order of time.
        topology: the call graph of the cluster that they come from.

    Raises:
        ValueError: when there is no line, or none that names a service.
    """

    def __init__(self, text: str, topology: CallGraph = DEFAULT_TOPOLOGY) -> None:
        incident = PastedIncident(topology)
        self._names = topology.names
        self._lines = [
            line.rstrip()
            for line in text.splitlines()
            if line.strip() and not line.startswith(HEADERS)
        ]
        if not self._lines:
            raise ValueError("there is no line to triage; paste some log lines")
        if not any(map(self._service_of, self._lines)):
            raise ValueError(
                f"none of the {len(self._lines)} lines names a service of the call graph "
                f"({', '.join(topology.names)}); give the one that they come from"
            )
        most = incident.task.max_steps
        super().__init__(incident, Observation(0, most, lines=self._lines[-SHOWN:]))

    def asked(self, service: str) -> Observation:
        """See `RecordedEpisode.asked`: the last lines that name the service first."""
        lines = [line for line in self._lines if service in (ALL_SERVICES, self._service_of(line))][
            -TOLD:
        ]
        return Observation(0, 0, notice="" if lines else f"no lines of {service}", lines=lines)

    def _service_of(self, line: str) -> str:
        """The service that a line names first; empty for none. Of two names at one place, which
        begin alike, it is the longer.
        """
        places = {name: line.find(name) for name in self._names}
        named = [name for name, place in places.items() if place >= 0]
        return min(named, key=lambda name: (places[name], -len(name)), default="")
