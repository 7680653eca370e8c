"""LogTriage: incidents in a microservice cluster, for language models to trace to their root.

`world` and `play`, the simulator and the score, need the standard library, and YAML for a call
graph's file.
The environment and its server need OpenEnv, `ceiling` and `bench` NumPy and pandas, language models
in this process and `train` torch. `pyproject.toml` has an extra for what the server does without.
"""

# The public address; CONTRIBUTING.md says how to change it everywhere.
REPOSITORY = "OWNER/logtriage"
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """What `verifiers` looks for in an environment's package; only asking for it imports verifiers,
    and is an `AttributeError` where that is not installed.
    """
    if name not in ("__all__", "TriageEnv", "TriageHarness", "TriageTaskset"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from .adapters import verifiers
    except ModuleNotFoundError as error:
        raise AttributeError(
            f"{name} is for verifiers, which cannot be imported: {error}"
        ) from error
    return vars(verifiers)[name]
