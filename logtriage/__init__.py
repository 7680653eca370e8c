"""LogTriage: incidents in a microservice cluster, for language models to trace to their root.

`world` (the simulator), `play` (the score) and `policies` need only the standard library, and YAML
for a call graph's file. The environment and its server need OpenEnv, and nothing here needs NumPy
or torch. `registry` finds what other packages add: models, training, evaluation, real incidents.
"""

# The public address; CONTRIBUTING.md says how to change it everywhere.
REPOSITORY = "OWNER/logtriage"
__version__ = "0.2.0"


def __getattr__(name: str) -> object:
    """Return what `verifiers` looks for in an environment's package, imported when asked for."""
    if name not in ("__all__", "TriageEnv", "TriageHarness", "TriageTaskset"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from .adapters import verifiers
    except ModuleNotFoundError as error:
        raise AttributeError(
            f"{name} is for verifiers, which cannot be imported: {error}"
        ) from error
    return vars(verifiers)[name]
