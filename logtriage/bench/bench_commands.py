"""The commands around measuring: `evaluate`, `replay` and `benchmark`.

What they need is imported when they run, so that `--help` is quick.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from .replay import Replayed

MOST_SAID = 2_000  # characters of a line of an error
MOST_TOLD = 20  # of the episodes that are not confirmed
JOURNALS = Path("runs/evaluations")  # where models' episodes are kept unless a file is named


def fail(error: Exception) -> typer.Exit:
    """Print an error as one line and return the exit to raise."""
    from ..logs.lines import visible

    told = "\n".join(visible(line, MOST_SAID) for line in str(error).splitlines())
    typer.secho(f"error: {told}", fg="red", err=True)
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
    turn_tokens: Annotated[int, typer.Option(min=1, help="New tokens a turn, of --model.")] = 256,
    batch: Annotated[int, typer.Option(min=1, help="Incidents that a model plays at once.")] = 50,
    endpoint: Annotated[str, typer.Option(help="Base URL of an OpenAI-compatible server.")] = "",
    endpoint_model: Annotated[
        str, typer.Option(help="The model's name there; its key is in OPENAI_API_KEY.")
    ] = "",
    concurrency: Annotated[
        int, typer.Option(min=1, help="Conversations with the endpoint at once.")
    ] = 8,
    budget_tokens: Annotated[
        int | None,
        typer.Option(min=1, help="Begin no further episode once so many tokens are spent."),
    ] = None,
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
        typer.Option(min=2, help="Incidents a task; by default 200, or all that are real."),
    ] = None,
    first: Annotated[int, typer.Option(min=0, help="First incident.")] = 0,
    attempts: Annotated[
        int, typer.Option(min=1, help="At each incident; tells pass@k and pass^k.")
    ] = 1,
    temperature: Annotated[
        float, typer.Option(min=0.0, help="Of language models; 0 is greedy.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(help="Of sampling, when the temperature is above 0.")] = 0,
    env_url: Annotated[
        str, typer.Option(help="Play on the server there (`serve`), instead of in this process.")
    ] = "",
    topology: Annotated[
        Path | None, typer.Option(help="A call graph of your own, in YAML; see examples/shop.yaml.")
    ] = None,
    trajectories: Annotated[
        Path | None,
        typer.Option(
            help="Write every episode here as it ends, JSON lines that `replay` confirms; "
            "by default those of models, in runs/evaluations."
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with what that file holds already.")
    ] = False,
    retry_errors: Annotated[
        bool,
        typer.Option("--retry-errors", help="With --resume: play what ended in an error again."),
    ] = False,
    json_path: Annotated[
        Path | None,
        typer.Option("--json", help="Write the episodes here, a JSON array of objects."),
    ] = None,
    audited: Annotated[
        bool,
        typer.Option("--audit", help="Tell, too, whether what was seen bears out what was blamed."),
    ] = False,
) -> None:
    """Play policies on incidents and print mean scores with 95 % bootstrap intervals."""
    from functools import partial

    from ..ceiling.belief import check_enumerable
    from ..logs.lines import visible
    from ..play.episode import OpenEpisode
    from ..real.catalogue import open_incident
    from ..real.real_episode import REAL, SCORED
    from ..world.incidents import sample_incident
    from ..world.topology_file import load_topology
    from .episode_file import Journal
    from .evaluation import evaluate, make_plan
    from .intervals import score_table
    from .real_results import real_policy, real_scores
    from .registry import make_policy
    from .strata import with_truth
    from .talkers import Talkers, digest_of
    from .telling import told

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
        if retry_errors and not resume:
            raise ValueError("--retry-errors goes on with a file; add --resume")
        talkers = Talkers(
            models=tuple(model or ()),
            adapter=adapter,
            load_in_4bit=load_in_4bit,
            turn_tokens=turn_tokens,
            endpoint=endpoint,
            endpoint_model=endpoint_model,
            concurrency=concurrency,
            tools=tools,
            temperature=temperature,
            seed=seed,
        )
        _check_writable(json_path)
        graph = None if topology is None else load_topology(topology)
        plan = make_plan(task or ["all"], split, episodes, first, attempts, graph)
        real = REAL in plan.tasks
        if real and audited:
            raise ValueError(
                "an audit weighs what was seen by the simulator's own model, and of real incidents "
                "there is none; leave out --audit"
            )
        for name in plan.tasks if audited else ():
            check_enumerable(name)
        if graph is not None:
            for name in plan.tasks:  # rather now than after hours with a language model
                sample_incident(name, split, first, graph)
        settings: dict[str, Any] = {"split": split, "audit": audited}
        if env_url:  # which may play on a call graph of its own
            settings["server"] = env_url.rstrip("/")
        if graph is not None:
            settings["call graph"] = graph.call_graph_text
        if talkers:
            settings |= talkers.settings
        if trajectories is None and talkers:
            trajectories = JOURNALS / f"{digest_of(settings)}.jsonl"
        if resume and trajectories is None:
            raise ValueError("--resume goes on with a file; name it by --trajectories")
        _check_writable(trajectories, made=bool(talkers))
        journal = None
        if trajectories is not None:
            journal = Journal(trajectories, settings, resume, retry_errors)
        scripted = policy or ([] if talkers else ["loudest", "trace"])
        make = real_policy if real else make_policy
        policies = [
            # those with whims draw others when they go on
            make(name, 0 if journal is None else len(journal.played(name)))
            for name in dict.fromkeys(scripted)
        ]
        policies += talkers.policies(typer.echo)
    except (ValueError, OSError) as error:
        raise fail(error) from None
    try:
        with ExitStack() as stack:
            open_episode: OpenEpisode = partial(open_incident, topology=graph)
            if env_url:
                open_episode = stack.enter_context(context.obj(env_url)).open
            found = evaluate(policies, plan, journal, audited, budget_tokens, batch, open_episode)
    except (ConnectionError, ValueError) as error:  # a policy may refuse a task, too
        raise fail(error) from None
    typer.echo(
        f"{split}, incidents {first} to {first + plan.episodes - 1} of each task; "
        + (f"95 % Wilson intervals\nscored: {SCORED}" if real else "95 % bootstrap intervals")
    )
    # a server may play on a call graph of its own, and does not tell the truth
    truth = None if env_url or real else partial(with_truth, topology=graph)
    table = real_scores if real else score_table
    typer.echo("\n".join(told(found.frame, attempts, truth, audited, table)))
    if talkers and attempts > 1 and not temperature:
        typer.echo("greedy: a model's attempts are equal; --temperature makes others")
    if journal is not None:
        typer.echo(f"trajectories are in {journal.path}; `replay` confirms their scores")
    if json_path is not None:
        rows = json.loads(found.frame.to_json(orient="records"))
        json_path.write_text(json.dumps(rows, indent=1) + "\n")
        typer.echo(f"wrote {len(rows)} episodes to {json_path}")
    if found.unplayed:
        typer.secho(
            f"{found.unplayed} episodes were not played: {visible(found.reason, MOST_SAID)}; "
            "--resume goes on",
            fg="red",
            err=True,
        )
        raise typer.Exit(1)


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
        Path | None, typer.Option(help="The call graph of your own that it was played on, in YAML.")
    ] = None,
    atif: Annotated[
        Path | None, typer.Option(help="Write each episode there as ATIF, a JSON file of its own.")
    ] = None,
    entry: Annotated[
        Path | None,
        typer.Option(help="Write an entry of the leaderboard there, if all is confirmed."),
    ] = None,
    name: Annotated[str, typer.Option(help="By which the entry shows the policy.")] = "",
    about: Annotated[str, typer.Option(help="What the policy is, for the entry.")] = "",
) -> None:
    """Play the actions of a file again, and confirm its scores: MATCH, DRIFT or FORGED."""
    from collections import Counter
    from functools import partial

    from ..logs.lines import visible
    from ..real.catalogue import open_incident
    from ..world.topology_file import load_topology
    from .episode_file import read_journal
    from .leaderboard import as_text, make_entry
    from .replay import DRIFT, FORGED, replay
    from .runs import write_text

    try:
        if not path.is_file():
            raise ValueError(f"{path}: no such file; name one of `evaluate --trajectories`")
        graph = None if topology is None else load_topology(topology)
        told = read_journal(path)[0].get("settings", {}).get("call graph")
        if told != (None if graph is None else graph.call_graph_text):
            raise ValueError(
                f"{path} was played on another call graph; name it by --topology, or leave that out"
            )
        _check_writable(entry)
        found = list(replay(path, partial(open_incident, topology=graph)))
    except (ValueError, OSError) as error:
        raise fail(error) from None
    for one in [one for one in found if one.verdict in (DRIFT, FORGED)][:MOST_TOLD]:
        row = one.line.get("row") if isinstance(one.line, dict) else None
        row = row if isinstance(row, dict) else {}
        where = " ".join(str(row.get(key)) for key in ("policy", "task", "index", "attempt"))
        typer.echo(f"{one.verdict} {visible(where, 120)}: {visible(one.reason, 200)}")
    counts = Counter(one.verdict for one in found)
    typer.echo(
        ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()) or "empty"
    )
    try:
        if atif is not None:
            _write_atif(atif, found)
        if entry is not None:
            write_text(entry, as_text(make_entry(path, found, name, about)))
            typer.echo(f"wrote {entry}")
    except (ValueError, OSError) as error:
        raise fail(error) from None
    if counts[DRIFT] or counts[FORGED]:
        raise typer.Exit(1)


def _write_atif(folder: Path, found: list[Replayed]) -> None:
    """Write what was confirmed, or drifted, as ATIF; nothing forged is passed on."""
    from collections import Counter

    from .atif import as_atif, name_of
    from .replay import FORGED

    folder.mkdir(parents=True, exist_ok=True)
    kept = [one for one in found if one.verdict != FORGED]
    named = [name_of(one.line["row"]) for one in kept]
    twice = sorted(name for name, times in Counter(named).items() if times > 1)
    if twice:
        raise ValueError(f"two trajectories would both be {twice[0]:.120}.json; rename a policy")
    for one, name in zip(kept, named, strict=True):
        document = as_atif(one.line, one.verdict)
        path = folder / f"{name}.json"
        path.write_text(json.dumps(document, indent=1) + "\n")
    typer.echo(f"wrote {len(kept)} trajectories to {folder}")


def benchmark_command(
    folder: Annotated[Path, typer.Option(help="Finished parts are kept here.")] = Path(
        "runs/benchmark"
    ),
    results: Annotated[Path, typer.Option(help="Where tables and figures go.")] = Path(
        "results/benchmark"
    ),
    incidents: Annotated[int, typer.Option(min=2, help="Per policy, task and split.")] = 500,
    processes: Annotated[int, typer.Option(min=1, help="Played at once.")] = 2,
    climbs: Annotated[
        int, typer.Option(min=1, help="Hill climbs of each search for exploits.")
    ] = 4,
) -> None:
    """Play 7 policies on all tasks and splits; write every table and figure of the benchmark."""
    import time

    from .benchmark import make_report

    began = time.monotonic()
    try:
        make_report(folder, results, incidents, processes, climbs)
    except ValueError as error:
        raise fail(error) from None
    typer.echo(f"this took {(time.monotonic() - began) / 60:.1f} minutes")
