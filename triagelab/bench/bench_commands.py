"""The commands around evaluation: `evaluate`, `verify` and `watch`.

They import what they need when they run, so that `--help` is quick.
"""

import math
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from logtriage.command_line import LONGEST, errors_in_a_line, given_options, refuse_beside_suite

app = typer.Typer()

MOST_LISTED = 20  # episodes that are not confirmed
OF_A_RUN = ("run", "episodes", "concurrency", "hours")  # options of `evaluate` that fit a run
JOURNALS = Path("runs/evaluations")  # where models' episodes are kept unless a file is named

TopologyPath = Annotated[
    Path | None, Option(help="A custom call graph, in YAML; see examples/shop.yaml.")
]


@app.command("evaluate")
@errors_in_a_line()
def evaluate_command(
    context: typer.Context,
    policy: Annotated[
        list[str] | None,
        Option(help="A script, as trace (a wrong name lists all), or a rule of docs/real.md."),
    ] = None,
    model: Annotated[
        list[str] | None, Option(help="agent, base, smollm2, a folder or hub name.")
    ] = None,
    run: Annotated[
        Path | None,
        Option(help="A training run's folder, by itself: its model before and after, and scripts."),
    ] = None,
    adapter: Annotated[Path | None, Option(help="LoRA adapter of the one --model.")] = None,
    load_in_4bit: Annotated[
        bool, Option("--load-in-4bit", help="Models in 4 bit, on an NVIDIA GPU.")
    ] = False,
    endpoint: Annotated[str, Option(help="Base URL of an OpenAI-compatible server.")] = "",
    endpoint_model: Annotated[str, Option(help="Its name there; key: OPENAI_API_KEY.")] = "",
    concurrency: Annotated[
        int | None, Option(min=1, help="Incidents at once: 50, with an endpoint 8, of a run 100.")
    ] = None,
    hours: Annotated[
        float, Option(min=0.0, help="Of a run: begin no batch that would not end within so many.")
    ] = math.inf,
    tools: Annotated[str, Option(help="How models call: native, or text.")] = "native",
    constrained: Annotated[
        bool, Option("--constrained/--free", help="Let a --model write only calls that exist.")
    ] = True,
    task: Annotated[list[str] | None, Option(help="Task, or all; or real, by itself.")] = None,
    split: Annotated[
        str,
        Option(
            help="train, test, unseen_faults, unseen_wording or unseen_topology; of real incidents "
            "petshop, nezha-trainticket or nezha-onlineboutique."
        ),
    ] = "test",
    episodes: Annotated[
        int | None, Option(min=2, help="Incidents of each task; default 200, or all real.")
    ] = None,
    first: Annotated[int, Option(min=0, help="First incident.")] = 0,
    suite: Annotated[
        str, Option(help="Play a suite: lite, 30 incidents of test, for who pays per token.")
    ] = "",
    attempts: Annotated[int, Option(min=1, help="At each incident, for pass@k.")] = 1,
    temperature: Annotated[float, Option(min=0.0, help="Of models; 0 is greedy.")] = 0.0,
    seed: Annotated[int, Option(help="Of sampling, when the temperature is above 0.")] = 0,
    env_url: Annotated[str, Option(help="Play on the server there, see `serve`.")] = "",
    topology: TopologyPath = None,
    trajectories: Annotated[
        Path | None,
        Option(help="Where episodes are written, for `verify`; of models runs/evaluations."),
    ] = None,
    json_path: Annotated[Path | None, Option("--json", help="Write rows here.")] = None,
    audited: Annotated[
        bool, Option("--audit", help="Show whether the evidence supported what was blamed.")
    ] = False,
) -> None:
    """Play scripts, models, an endpoint or a run on held-out incidents, and print their scores.

    Means have 95 % bootstrap intervals. The same command again goes on where it was stopped, and
    plays again what ended in an error. Repeat --policy, --model and --task for several.
    """
    if run is not None:
        others = {str(parameter.name) for parameter in context.command.params} - {*OF_A_RUN}
        if dropped := given_options(context, others):
            raise ValueError(
                f"--run goes with --episodes, --concurrency and --hours; drop {dropped}"
            )
        _evaluate_run(run, episodes, concurrency, hours)
        return
    if given_options(context, ["hours"]):
        raise ValueError("--hours are those of a run; name one by --run, or drop --hours")
    from logtriage.catalogue import open_incident, recorded_task
    from logtriage.play.actions import visible
    from logtriage.play.conversation import NATIVE, PROTOCOLS
    from logtriage.policies.policy import BATCH
    from logtriage.world.incidents import sample_incident
    from logtriage.world.topology_file import load_topology

    from ..language_models.endpoint import CONCURRENCY
    from .audit import judge_result
    from .evaluation import evaluate, expected_cost, make_plan, report, suite_plan
    from .journal import open_journal
    from .recorded_results import RECORDED_POLICIES
    from .registry import POLICIES, behind_endpoint, digest, in_memory, scripted

    _check_writable(json_path)
    if env_url and (topology is not None or "oracle" in (policy or ())):
        raise ValueError(
            "a server plays on its own call graph, and tells no answers: start it with `serve "
            "--topology`, and leave out oracle; or leave out --env-url"
        )
    graph = None if topology is None else load_topology(topology)
    if suite:
        refuse_beside_suite(context)
        plan = suite_plan(suite, attempts)
    else:
        plan = make_plan(task or ["all"], split, episodes, first, attempts, graph)
    recorded = recorded_task(plan.names[0]) is not None
    if recorded and audited:
        raise ValueError(
            f"an audit is by the simulator's own model; leave out --audit or {plan.names[0]}"
        )
    for name in plan.names if graph else ():  # fail now, not after loading a model
        sample_incident(name, split, first, graph)

    if tools not in PROTOCOLS:
        raise ValueError(
            f"unknown way to call tools {tools!r:.60}; choose {' or '.join(PROTOCOLS)}"
        )
    protocol = PROTOCOLS[tools]
    sampling: dict[str, Any] = {"protocol": protocol, "temperature": temperature, "seed": seed}
    sources = model or []
    if adapter is not None and len(sources) != 1:
        raise ValueError("--adapter goes on one --model; name that one")
    if bool(endpoint) != bool(endpoint_model):
        raise ValueError("--endpoint and --endpoint-model go together; give both")
    options = {**sampling, "constrained": constrained and protocol is NATIVE}
    models = [in_memory(source, "", load_in_4bit, adapter, **options) for source in sources]
    if endpoint:
        models.append(behind_endpoint(endpoint, endpoint_model, concurrency, **sampling))
    known = RECORDED_POLICIES if recorded else POLICIES
    named = dict.fromkeys(policy or ([] if models else ["loudest", "trace"]))
    players = [scripted(name, known) for name in named] + models

    settings: dict[str, Any] = {
        "split": split,
        "audit": audited,
        "policies": {player.name: player.settings for player in players},
    }
    if env_url:  # a server may play on a custom call graph
        settings["server"] = env_url.rstrip("/")
    if graph is not None:
        settings["call graph"] = graph.call_graph_text
    if trajectories is None and models:
        trajectories = JOURNALS / f"{digest(settings)}.jsonl"

    if plan.suite and models:
        at_once = concurrency or (CONCURRENCY if endpoint else BATCH)
        typer.echo(f"{plan.suite}: {expected_cost(plan, at_once)}")
    with ExitStack() as stack:
        enter = stack.enter_context
        journal = enter(open_journal(trajectories, settings)) if trajectories else None
        server = enter(context.obj(env_url)) if env_url else None
        opened = server.open if server else partial(open_incident, topology=graph)
        judge = judge_result if audited else None
        done = evaluate(players, plan, journal, judge, concurrency or BATCH, opened)

    if json_path is not None:  # first, to keep the episodes whatever happens below
        done.frame.to_json(json_path, orient="records", indent=1)
    typer.echo("\n".join(report(done.frame, plan, graph, known=not env_url)))
    if models and attempts > 1 and not temperature:
        typer.echo("greedy: a model's attempts are equal; --temperature makes others")
    if trajectories is not None:
        typer.echo(f"trajectories are in {trajectories}; `verify` confirms their scores")
    failed = int(done.frame["error"].ne("").sum())
    if failed or done.unplayed:
        reason = f": {visible(done.reason, LONGEST)}" if done.reason else ""
        message = (
            f"{failed} episodes ended in an error and have no score, {done.unplayed} were not "
            f"played{reason}; the same command again plays them"
        )
        typer.secho(message, fg="red", err=True)
        raise typer.Exit(1)


def _check_writable(path: Path | None) -> None:
    """Raise `ValueError` for a file that cannot be written: now, not after hours."""
    if path is not None and (path.is_dir() or not path.parent.is_dir()):
        raise ValueError(f"cannot write {path}; name a file in a folder that is there")


def _evaluate_run(run: Path, episodes: int | None, batch: int | None, hours: float) -> None:
    """Play a run's model on held-out incidents of `test`, and print what training changed."""
    from .run_evaluation import evaluate_run, refuse_production, summarise_run
    from .score_tables import score_table, summary_table

    refuse_production(run)
    frame = evaluate_run(run, episodes or 200, batch=batch or 100, hours=hours)
    if (frame["policy"] == "trained").any():
        rows = summarise_run(run, frame)
        typer.echo(summary_table(rows).to_string(index=False))
    else:
        typer.echo(score_table(frame).to_string(index=False))
        typer.echo("nothing of the trained model: training has not ended, or the hours were over")
    counts = frame.groupby("task", sort=False)["index"].nunique()
    counted = ", ".join(f"{count} of {task}" for task, count in counts.items())
    typer.echo(f"held-out incidents: {counted}; the episodes are in {run}/evaluation.parquet")


@app.command("watch")
@errors_in_a_line()
def watch_command(
    who: Annotated[
        str,
        Argument(
            help="agent, base, smollm2, a script as trace, a model's folder or hub name; by "
            "default SmolLM2 before and after GRPO, as recorded.",
            show_default=False,
        ),
    ] = "",
    beside: Annotated[str, Option(help="Another of these, at its left.")] = "",
    task: Annotated[str, Option(help="Of the incident.")] = "cascading_failure",
    split: Annotated[str, Option(help="Of the incident.")] = "test",
    index: Annotated[
        int | None, Option(min=0, help="Of the incident; by default one that shows learning.")
    ] = None,
    pause: Annotated[float, Option(min=0.0, help="Seconds between two steps.")] = 1.0,
) -> None:
    """Watch a language model, or any policy, play an incident step by step."""
    from rich.console import Console

    from logtriage.recorded import AFTER, BEFORE, CHOSEN

    from .watch import players_of, watch

    if beside and not who:
        raise ValueError(f"--beside {beside} of whom? name both, as in `watch agent --beside base`")
    names = [name for name in (beside, who) if name] or [BEFORE, AFTER]
    index = CHOSEN[-1] if index is None else index
    players = players_of(names, task, split, index)
    watch(players, task, split, index, pause, Console())


@app.command("verify")
@errors_in_a_line()
def verify_command(
    path: Annotated[Path, Argument(help="A file of `--trajectories`.")],
    topology: TopologyPath = None,
    json_path: Annotated[
        Path | None, Option("--json", help="Write its rows here, if all are confirmed.")
    ] = None,
) -> None:
    """Play the actions of a file again, and confirm its scores.

    Each is MATCH, DRIFT, MISMATCH, UNSCORED or MISSING; mean scores are of those that match.
    """
    from collections import Counter

    from logtriage.catalogue import open_incident, recorded_task
    from logtriage.play.actions import visible
    from logtriage.world.topology_file import load_topology

    from .journal import read_trajectories
    from .rollouts import frame_of
    from .score_tables import score_table
    from .verify import MATCH, UNSCORED, verify

    _check_writable(json_path)
    graph = None if topology is None else load_topology(topology)
    played_on = read_trajectories(path)[0].get("call graph")
    if played_on != (None if graph is None else graph.call_graph_text):
        raise ValueError(
            f"{path} was played on another call graph; name it by --topology, or leave that out"
        )
    checks = verify(path, partial(open_incident, topology=graph))
    wrong = [check for check in checks if check.verdict not in (MATCH, UNSCORED)]
    for check in wrong[:MOST_LISTED]:
        where = " ".join(map(str, (check.where[0], *check.where[1])))
        typer.echo(f"{check.verdict} {visible(where, 120)}: {visible(check.reason, 200)}")
    counts = Counter(check.verdict for check in checks).most_common()
    typer.echo(", ".join(f"{count} {verdict}" for verdict, count in counts) or "empty")
    rows = [check.row for check in checks if check.verdict == MATCH and check.row]
    if rows and not recorded_task(rows[0]["task"]):
        frame = frame_of(rows, list(dict.fromkeys(row["task"] for row in rows)))
        frame["policy"] = [visible(name, 60) for name in frame["policy"]]
        typer.echo(score_table(frame).to_string(index=False))
    if wrong:
        raise typer.Exit(1)
    if json_path is not None:
        confirmed = [check.row for check in checks if check.row]
        tasks = list(dict.fromkeys(row["task"] for row in confirmed))
        frame_of(confirmed, tasks).to_json(json_path, orient="records", indent=1)
        typer.echo(f"wrote {json_path}")
