"""The commands around evaluation: `evaluate`, `replay` and `benchmark`.

What they need is imported when they run, so that `--help` is quick.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from .registry import Player

MOST_SHOWN = 20  # of the episodes that are not confirmed
LONGEST = 2_000  # characters of a line of an error
JOURNALS = Path("runs/evaluations")  # where models' episodes are kept unless a file is named


def fail(error: Exception) -> typer.Exit:
    """Print an error as one line and return the exit to raise."""
    from ..logs.lines import visible

    lines = "\n".join(visible(line, LONGEST) for line in str(error).splitlines())
    typer.secho(f"error: {lines}", fg="red", err=True)
    return typer.Exit(2)


def evaluate_command(
    context: typer.Context,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="random, constant, loudest, novice, trace, belief, oracle; on real incidents the "
            "rules of docs/real.md, too. Repeat for several."
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(help="Folder or hub name of a language model. Repeat for several."),
    ] = None,
    adapter: Annotated[
        Path | None, typer.Option(help="A LoRA adapter to put on the one --model.")
    ] = None,
    load_in_4bit: Annotated[
        bool, typer.Option("--load-in-4bit", help="Models in 4 bit, on an NVIDIA GPU.")
    ] = False,
    endpoint: Annotated[str, typer.Option(help="Base URL of an OpenAI-compatible server.")] = "",
    endpoint_model: Annotated[
        str, typer.Option(help="The model's name there; its key is in OPENAI_API_KEY.")
    ] = "",
    concurrency: Annotated[
        int, typer.Option(min=1, help="Conversations with the endpoint at once.")
    ] = 8,
    tools: Annotated[
        str,
        typer.Option(
            help="How models call tools: native, or text for servers that do not parse calls."
        ),
    ] = "native",
    task: Annotated[
        list[str] | None, typer.Option(help="Task, or all; or real, by itself. Repeat for several.")
    ] = None,
    split: Annotated[
        str,
        typer.Option(
            help="train, test, unseen_faults, unseen_wording or unseen_topology; of real incidents "
            "petshop, nezha-trainticket or nezha-onlineboutique."
        ),
    ] = "test",
    episodes: Annotated[
        int | None,
        typer.Option(min=2, help="Incidents of each task; by default 200, or all that are real."),
    ] = None,
    first: Annotated[int, typer.Option(min=0, help="First incident.")] = 0,
    attempts: Annotated[
        int, typer.Option(min=1, help="At each incident; shows pass@k and pass^k.")
    ] = 1,
    temperature: Annotated[
        float, typer.Option(min=0.0, help="Of language models; 0 is greedy.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(help="Of sampling, when the temperature is above 0.")] = 0,
    env_url: Annotated[
        str, typer.Option(help="Play on the server there (`serve`), instead of in this process.")
    ] = "",
    topology: Annotated[
        Path | None, typer.Option(help="A custom call graph, in YAML; see examples/shop.yaml.")
    ] = None,
    trajectories: Annotated[
        Path | None,
        typer.Option(
            help="Write every episode here as it ends, JSON lines that `replay` confirms; "
            "by default those of models, in runs/evaluations."
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Only go on: refuse to begin a new file.")
    ] = False,
    retry_errors: Annotated[
        bool, typer.Option("--retry-errors", help="Play what ended in an error again.")
    ] = False,
    json_path: Annotated[
        Path | None,
        typer.Option("--json", help="Write the episodes here, a JSON array of objects."),
    ] = None,
    audited: Annotated[
        bool,
        typer.Option("--audit", help="Show, too, whether what was seen supports what was blamed."),
    ] = False,
) -> None:
    """Play policies on incidents and print mean scores with 95 % bootstrap intervals. The same
    command again goes on where it was stopped, and plays nothing twice.
    """
    from functools import partial

    from ..logs.lines import visible
    from ..play.episode import OpenEpisode
    from ..policies.llm.text_protocol import check_protocol
    from ..real.catalogue import open_incident
    from ..real.real_episode import REAL, SCORED
    from ..world.incidents import sample_incident
    from ..world.topology_file import load_topology
    from .audit import judge_result
    from .episode_log import Journal
    from .evaluation import evaluate, make_plan, report
    from .real_results import real_policy, real_scores
    from .registry import behind_endpoint, digest, in_memory, make_policy, scripted
    from .score_tables import score_table
    from .strata import with_truth

    try:
        if env_url and "oracle" in (policy or []):
            raise ValueError(
                "oracle knows the answer, which no server tells; leave it out, or leave out "
                "--env-url"
            )
        if env_url and topology is not None:
            raise ValueError(
                "a server plays on its own call graph; start it with `serve --topology`, "
                "or leave out --env-url"
            )
        if bool(endpoint) != bool(endpoint_model):
            raise ValueError("--endpoint and --endpoint-model go together; give both")
        if adapter is not None and len(model or ()) != 1:
            raise ValueError("--adapter goes on one --model; name that one")
        _check_writable(json_path)
        graph = None if topology is None else load_topology(topology)
        plan = make_plan(task or ["all"], split, episodes, first, attempts, graph)
        real = REAL in plan.names
        if real and audited:
            raise ValueError(
                "an audit weighs what was seen by the simulator's own model, and of real incidents "
                "there is none; leave out --audit"
            )
        if graph is not None:  # rather now than after hours with a language model
            for name in plan.names:
                sample_incident(name, split, first, graph)
        sampling: dict[str, Any] = {
            "protocol": check_protocol(tools),
            "temperature": temperature,
            "seed": seed,
        }
        models: list[Player] = [
            in_memory(one, "", load_in_4bit, adapter, **sampling, say=typer.echo)
            for one in model or ()
        ]
        if endpoint:
            models.append(behind_endpoint(endpoint, endpoint_model, concurrency, **sampling))
        named = dict.fromkeys(policy or ([] if models else ["loudest", "trace"]))
        players = [scripted(name, real_policy if real else make_policy) for name in named] + models
        settings: dict[str, Any] = {
            "split": split,
            "audit": audited,
            "policies": {player.name: player.settings for player in players},
        }
        if env_url:  # which may play on a custom call graph
            settings["server"] = env_url.rstrip("/")
        if graph is not None:
            settings["call graph"] = graph.call_graph_text
        if trajectories is None and models:
            trajectories = JOURNALS / f"{digest(settings)}.jsonl"
        if (resume or retry_errors) and not (trajectories and trajectories.exists()):
            raise ValueError(
                f"there is no file {trajectories or ''} to go on with; name it by --trajectories, "
                "or leave out --resume and --retry-errors"
            )
        _check_writable(trajectories, made=bool(models))
        journal = None
        with ExitStack() as stack:
            if trajectories is not None:
                journal = stack.enter_context(Journal(trajectories, settings, retry_errors))
            open_episode: OpenEpisode = partial(open_incident, topology=graph)
            if env_url:
                open_episode = stack.enter_context(context.obj(env_url)).open
            judge = judge_result if audited else None
            found = evaluate(players, plan, journal, judge, open_episode=open_episode)
    except (ConnectionError, ValueError, OSError) as error:
        raise fail(error) from None
    if json_path is not None:  # first: whatever happens below, the episodes are there
        rows = json.loads(found.frame.to_json(orient="records"))
        json_path.write_text(json.dumps(rows, indent=1) + "\n")
    typer.echo(
        f"{split}, incidents {first} to {first + plan.episodes - 1} of each task; "
        + (f"95 % Wilson intervals\nscored: {SCORED}" if real else "95 % bootstrap intervals")
    )
    # a server may play on a custom call graph, and does not tell the truth
    truth = None if env_url or real else partial(with_truth, topology=graph)
    table = real_scores if real else score_table
    typer.echo("\n".join(report(found.frame, attempts, truth, table)))
    if models and attempts > 1 and not temperature:
        typer.echo("greedy: a model's attempts are equal; --temperature makes others")
    if trajectories is not None:
        typer.echo(f"trajectories are in {trajectories}; `replay` confirms their scores")
    if json_path is not None:
        typer.echo(f"wrote {len(found.frame)} episodes to {json_path}")
    failed = int(found.frame["error"].ne("").sum())
    if failed:
        again = "the same command with --retry-errors plays them" if trajectories else "play them"
        _warn(f"{failed} episodes ended in an error and have no score; {again} again")
    if found.unplayed:
        _warn(
            f"{found.unplayed} episodes were not played: {visible(found.reason, LONGEST)}; the "
            "same command goes on"
        )
    if failed or found.unplayed:
        raise typer.Exit(1)


def _warn(text: str) -> None:
    typer.secho(text, fg="red", err=True)


def _check_writable(path: Path | None, made: bool = False) -> None:
    """Raise `ValueError` where nothing could be written: rather now than after playing. `made`
    folders need not be there.
    """
    if path is not None and not made and not path.parent.is_dir():
        raise ValueError(f"cannot write {path}: folder {path.parent} does not exist; make it first")
    if path is not None and path.is_dir():
        raise ValueError(f"cannot write {path}: it is a folder; name a file")


def replay_command(
    path: Annotated[Path, typer.Argument(help="A file of `evaluate --trajectories`.")],
    topology: Annotated[
        Path | None, typer.Option(help="The custom call graph that it was played on, in YAML.")
    ] = None,
    entry: Annotated[
        Path | None,
        typer.Option(help="Write an entry of the leaderboard there, if all is confirmed."),
    ] = None,
    name: Annotated[str, typer.Option(help="Of the policy, for the entry.")] = "",
    about: Annotated[str, typer.Option(help="What the policy is, for the entry.")] = "",
) -> None:
    """Play the actions of a file again, and confirm its scores: MATCH, DRIFT, FORGED or MISSING."""
    from collections import Counter
    from functools import partial

    from ..logs.lines import visible
    from ..real.catalogue import open_incident
    from ..world.topology_file import load_topology
    from .episode_log import read_trajectories
    from .leaderboard import as_text, make_entry
    from .replay import MATCH, UNSCORED, replay
    from .runs import write_text

    try:
        if not path.is_file():
            raise ValueError(f"{path}: no such file; name one of `evaluate --trajectories`")
        graph = None if topology is None else load_topology(topology)
        played_on = read_trajectories(path)[0].get("call graph")
        if played_on != (None if graph is None else graph.call_graph_text):
            raise ValueError(
                f"{path} was played on another call graph; name it by --topology, or leave that out"
            )
        _check_writable(entry)
        found = list(replay(path, partial(open_incident, topology=graph)))
    except (ValueError, OSError) as error:
        raise fail(error) from None
    wrong = [one for one in found if one.verdict not in (MATCH, UNSCORED)]
    for one in wrong[:MOST_SHOWN]:
        policy, key = one.where or ("a line", ())
        where = " ".join(map(str, (policy, *key)))
        typer.echo(f"{one.verdict} {visible(where, 120)}: {visible(one.reason, 200)}")
    counts = Counter(one.verdict for one in found).most_common()
    typer.echo(", ".join(f"{count} {verdict}" for verdict, count in counts) or "empty")
    if entry is not None:
        try:
            write_text(entry, as_text(make_entry(path, found, name, about)))
        except (ValueError, OSError) as error:
            raise fail(error) from None
        typer.echo(f"wrote {entry}")
    if wrong:
        raise typer.Exit(1)


def benchmark_command(
    folder: Annotated[Path, typer.Option(help="Finished parts are kept here.")] = Path(
        "runs/benchmark"
    ),
    results: Annotated[Path, typer.Option(help="Where tables and figures go.")] = Path(
        "results/benchmark"
    ),
    incidents: Annotated[int, typer.Option(min=2, help="Per policy, task and split.")] = 500,
    processes: Annotated[int, typer.Option(min=1, help="Played at once.")] = 2,
) -> None:
    """Play 7 policies on all tasks and splits; write every table and figure of the benchmark."""
    import time

    from .benchmark import make_report

    began = time.monotonic()
    try:
        make_report(folder, results, incidents, processes)
    except ValueError as error:
        raise fail(error) from None
    typer.echo(f"this took {(time.monotonic() - began) / 60:.1f} minutes")
