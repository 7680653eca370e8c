"""The fault catalogue: where each fault can strike, what it does to a service's quantities, its fix
and its team.

A fault never writes log text. It changes quantities of its own service only; everything else is
consequence. No remediation gives the team away, and no kind of service gives the fault away.
"""

from __future__ import annotations

from dataclasses import dataclass

from .call_graph import Service

REMEDIES = ("restart", "rollback", "scale", "flush-cache", "kill-query")
OWNER = "owner"  # placeholder team: whoever owns the struck service


@dataclass(frozen=True)
class Fault:
    """One kind of fault. Effects are at intensity 1 and scale linearly with intensity.

    | effect | unit |
    |---|---|
    | `capacity` | fraction of the service's capacity lost |
    | `latency` | added own latency, as a multiple of the idle latency |
    | `errors` | fraction of the service's own requests that fail |
    | `load` | added requests, as a multiple of the load at rest |
    | `pool` | fraction of the connection pool leaked |
    | `cache` | cache hit ratio lost, as a fraction of the ratio at rest |
    """

    name: str
    strikes: tuple[str, ...]
    remedy: str
    team: str
    capacity: float = 0.0
    latency: float = 0.0
    errors: float = 0.0
    load: float = 0.0
    pool: float = 0.0
    cache: float = 0.0
    # a boolean attribute of `Service` that the struck service must have, unless it is an edge
    needs: str = ""

    def can_strike(self, service: Service) -> bool:
        """Whether this fault can occur at `service`."""
        if service.kind not in self.strikes:
            return False
        return (
            not self.needs
            or service.is_edge
            or {"handles_logins": service.handles_logins, "session_cache": service.session_cache}[
                self.needs
            ]
        )

    def owner_at(self, service: Service) -> str:
        """The one team to page when this fault is at `service`."""
        return service.owner if self.team == OWNER else self.team


FAULTS: dict[str, Fault] = {
    fault.name: fault
    for fault in (
        Fault(
            "crash",
            ("app", "edge", "queue", "database"),
            "restart",
            OWNER,
            errors=0.95,
            capacity=0.5,
        ),
        Fault(
            "memory-leak",
            ("app", "edge", "queue"),
            "restart",
            OWNER,
            latency=60.0,
            capacity=0.8,
            errors=0.25,
        ),
        Fault("connection-leak", ("app", "database"), "restart", OWNER, pool=1.6, latency=10.0),
        Fault("bad-deploy", ("app", "edge"), "rollback", OWNER, errors=0.7, latency=4.0),
        Fault("bad-config", ("app", "edge", "queue"), "rollback", OWNER, errors=0.4, latency=50.0),
        Fault(
            "tampered-release",
            ("app", "edge"),
            "rollback",
            "security",
            capacity=0.75,
            latency=30.0,
            errors=0.2,
        ),
        Fault("overload", ("edge", "app", "queue"), "scale", "sre", load=3.0),
        Fault(
            "under-provisioned",
            ("edge", "app", "queue"),
            "scale",
            "sre",
            capacity=0.85,
            latency=6.0,
        ),
        Fault(
            "credential-stuffing", ("app",), "scale", "security", load=3.5, needs="handles_logins"
        ),
        Fault("traffic-flood", ("edge",), "scale", "security", load=3.5),
        Fault("cache-thrash", ("app", "database"), "flush-cache", OWNER, cache=1.0, latency=25.0),
        Fault("poisoned-cache", ("app",), "flush-cache", OWNER, errors=0.6),
        Fault(
            "stolen-sessions",
            ("app",),
            "flush-cache",
            "security",
            errors=0.3,
            load=1.5,
            needs="session_cache",
        ),
        Fault("runaway-query", ("database",), "kill-query", "dba", capacity=0.9, latency=60.0),
        Fault("lock-convoy", ("database",), "kill-query", "dba", latency=400.0, errors=0.25),
        Fault(
            "injected-query",
            ("database",),
            "kill-query",
            "security",
            capacity=0.8,
            latency=90.0,
            load=0.5,
        ),
    )
}


def faults_at(service: Service) -> tuple[Fault, ...]:
    """Every fault that can strike `service`, in catalogue order."""
    return tuple(fault for fault in FAULTS.values() if fault.can_strike(service))
