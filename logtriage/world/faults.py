"""The fault catalogue: where each fault can occur, what it does to a service's quantities, its
remedy and its team.

A fault never writes log text. It changes only quantities of its own service; everything else is a
consequence. No remedy gives the team away, and no kind of service gives the fault away.
"""

from dataclasses import dataclass

from .call_graph import Service

REMEDIES = ("restart", "rollback", "scale", "flush-cache", "kill-query")
OWNER = "owner"  # placeholder team: whoever owns the service


@dataclass(frozen=True)
class Fault:
    """One kind of fault. Effects are at intensity 1 and scale linearly with intensity."""

    name: str
    kinds: tuple[str, ...]  # of services that it can be injected into
    remedy: str
    team: str
    capacity: float = 0.0  # fraction of the service's capacity lost
    latency: float = 0.0  # added own latency, as a multiple of the idle latency
    errors: float = 0.0  # fraction of the service's own requests that fail
    load: float = 0.0  # added requests, as a multiple of the load at rest
    pool: float = 0.0  # fraction of the connection pool leaked
    cache: float = 0.0  # cache hit ratio lost, as a fraction of the ratio at rest
    needs: str = ""  # a boolean attribute that a service must have, unless it is an edge

    def can_occur_at(self, service: Service) -> bool:
        fits = service.kind == "edge" or not self.needs or getattr(service, self.needs)
        return service.kind in self.kinds and fits

    def owner_at(self, service: Service) -> str:
        """The one team to page when this fault is at `service`."""
        return service.owner if self.team == OWNER else self.team


A, E, Q, D = "app", "edge", "queue", "database"
FAULTS = {
    fault.name: fault
    for fault in (
        Fault("crash", (A, E, Q, D), "restart", OWNER, errors=0.95, capacity=0.5),
        Fault("memory-leak", (A, E, Q), "restart", OWNER, latency=60.0, capacity=0.8, errors=0.25),
        Fault("connection-leak", (A, D), "restart", OWNER, pool=1.6, latency=10.0),
        Fault("bad-deploy", (A, E), "rollback", OWNER, errors=0.7, latency=4.0),
        Fault("bad-config", (A, E, Q), "rollback", OWNER, errors=0.4, latency=50.0),
        Fault(
            "tampered-release",
            (A, E),
            "rollback",
            "security",
            capacity=0.75,
            latency=30.0,
            errors=0.2,
        ),
        Fault("overload", (E, A, Q), "scale", "sre", load=3.0),
        Fault("under-provisioned", (E, A, Q), "scale", "sre", capacity=0.85, latency=6.0),
        Fault("credential-stuffing", (A,), "scale", "security", load=3.5, needs="handles_logins"),
        Fault("traffic-flood", (E,), "scale", "security", load=3.5),
        Fault("cache-thrash", (A, D), "flush-cache", OWNER, cache=1.0, latency=25.0),
        Fault("poisoned-cache", (A,), "flush-cache", OWNER, errors=0.6),
        Fault(
            "stolen-sessions",
            (A,),
            "flush-cache",
            "security",
            errors=0.3,
            load=1.5,
            needs="session_cache",
        ),
        Fault("runaway-query", (D,), "kill-query", "dba", capacity=0.9, latency=60.0),
        Fault("lock-convoy", (D,), "kill-query", "dba", latency=400.0, errors=0.25),
        Fault(
            "injected-query", (D,), "kill-query", "security", capacity=0.8, latency=90.0, load=0.5
        ),
    )
}


def faults_at(service: Service) -> tuple[Fault, ...]:
    """Return the faults that can occur at `service`, in catalogue order."""
    return tuple(fault for fault in FAULTS.values() if fault.can_occur_at(service))
