"""Play the half of the public cases that is not in the package, and write who finds the root:

    python study/other_half.py petshop-root-cause-analysis Nezha

with checkouts of github.com/amazon-science/petshop-root-cause-analysis and
github.com/IntelligentDDS/Nezha. `real_cases.py` is what converted the shipped cases; their services
and calls are used again, and so is what is usual in PetShop's scenarios. What comes from traces and
logs of Train Ticket is converted here. All shipped cases of PetShop come out as they are, and those
of Train Ticket so nearly that rules and ranker answer them alike.

No case of this half was looked at while rules, dials or rankers were made.
"""

import copy
import gzip
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import real_cases
import typer

from logtriage.bench.recorded_results import RANKED, RECORDED_POLICIES, play_cases, reads
from logtriage.bench.registry import make_policy
from logtriage.production.production_policies import ranker_policy
from logtriage.real import cases

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results" / "production"
DAYS = {
    "nezha-onlineboutique": ("2022-08-22", "2022-08-23"),
    "nezha-trainticket": ("2023-01-29", "2023-01-30"),
}
AROUND = range(-3, 5)  # minutes from an injection in which files of traces and logs are sought
BEFORE = 60  # seconds before an injection that tell what is usual
COLUMNS = {
    "log": ["TimeUnixNano", "PodName", "Log"],
    "trace": ["StartTimeUnixNano", "PodName", "SpanID", "ParentID", "Duration"],
}
Json = dict[str, Any]


def shipped(source: str) -> Json:
    """A source of the package, as JSON."""
    path = ROOT / "logtriage" / "real" / f"{source}.json.gz"
    found: Json = json.loads(gzip.decompress(path.read_bytes()))
    return found


def like(case: Json, origin: str, source: str) -> Json:
    """A case to be converted: services, calls and window are those of a shipped one."""
    new = copy.deepcopy(case)
    truth = {**case["truth"], "origin": origin, "how": ""}
    return {**new, "id": f"{source}-other-{origin}", "logs": {}, "truth": truth}


# -- PetShop ---------------------------------------------------------------------------------------


def petshop(checkout: Path) -> Json:
    """The other cases of the scenarios with low and high traffic."""
    source = shipped("petshop")
    usual = {
        (case["truth"]["origin"].split("/")[0], *row[:2]): row[4:]
        for case in source["cases"]
        for row in case["measures"]
    }
    used = {case["truth"]["origin"] for case in source["cases"]}
    found = []
    for target in sorted(checkout.glob("dataset/*_traffic/*/*/target.json")):
        origin = str(target.parent.relative_to(checkout / "dataset"))
        scenario = origin.split("/")[0]
        if origin in used:
            continue
        first = next(
            one for one in source["cases"] if one["truth"]["origin"].startswith(f"{scenario}/")
        )
        case = real_cases.petshop_case(checkout, like(first, origin, "petshop"))
        rows = case["measures"]
        case["measures"] = [
            [*row[:4], *usual.get((scenario, *row[:2]), [None] * 4)] for row in rows
        ]
        case["truth"]["fault"] = "unknown"
        found.append(case)
    return {**source, "cases": found}


# -- Nezha -----------------------------------------------------------------------------------------


def nezha(checkout: Path, source_name: str) -> Json:
    """The other injections of the days that the shipped cases are from."""
    source = shipped(source_name)
    used = {case["truth"]["origin"] for case in source["cases"]}
    found = []
    for day in DAYS[source_name]:
        (path,) = (checkout / "rca_data" / day).glob("*fault_list.json")
        listed = [one for hour in json.loads(path.read_text()).values() for one in hour]
        first = next(one for one in source["cases"] if one["truth"]["origin"].startswith(day))
        for injection in listed:
            origin = injection["inject_time"]
            if origin not in used:
                case = real_cases.nezha_case(checkout, like(first, origin, source_name))
                if source["logs_from"]:
                    case |= traced(checkout / "rca_data" / day, origin, case["calls"])
                found.append(case)
    return {**source, "cases": found}


def traced(day: Path, origin: str, calls: list[list[str]]) -> Json:
    """Counts of log lines and times of calls, from the files of the minutes around an injection."""
    start = pd.Timestamp(origin, tz="UTC").timestamp()
    logs, spans = (pd.concat(minutes(day / kind, kind, start)) for kind in COLUMNS)
    logs = logs[logs["since"] > -150]  # some clocks are years off
    minutes_after = logs["since"].max() / 60.0
    return {
        "log_minutes": round(minutes_after, 1),
        "line_counts": list(line_counts(logs, minutes_after)),
        "call_times": list(call_times(spans, calls, minutes_after)),
    }


def minutes(folder: Path, kind: str, start: float) -> Iterator[pd.DataFrame]:
    for minute in AROUND:
        time = pd.Timestamp(start + 60 * minute, unit="s").strftime("%H_%M")
        path = folder / f"{time}_{kind}.csv"
        if path.exists():
            table = pd.read_csv(path, usecols=COLUMNS[kind])
            table["service"] = table["PodName"].map(real_cases.service_of)
            yield table.assign(since=table[COLUMNS[kind][0]].astype(float) / 1e9 - start)


def halves(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows after the injection, and those of the minute before it."""
    since = table["since"]
    return table[since >= 0.0], table[(since < 0.0) & (since >= -BEFORE)]


def line_counts(logs: pd.DataFrame, minutes_after: float) -> Iterator[list[Any]]:
    """For each service: lines, errors and warnings a minute, each with its usual number."""
    for service, rows in logs.groupby("service"):
        numbers = []
        for word in ("", r"\bERROR\b", r"\bWARN\b"):
            after, before = halves(rows[rows["Log"].str.contains(word)])
            numbers += [len(after) / minutes_after, float(len(before))]
        yield [service, *real_cases.rounded(numbers)]


def call_times(
    spans: pd.DataFrame, calls: list[list[str]], minutes_after: float
) -> Iterator[list[Any]]:
    """For each call: how long callers wait, the callee's time, and the rate, each with the usual.
    A wait is the sum of two 90th percentiles: of the callee's time, and of what is beyond it.
    """
    known = spans.drop_duplicates("SpanID").set_index("SpanID")
    inner = spans[spans["ParentID"].isin(known.index)].copy()
    parents = known.reindex(inner["ParentID"])
    inner["caller"] = parents["service"].to_numpy()
    inner["served"] = inner["Duration"] / 1000.0
    inner["beyond"] = parents["Duration"].to_numpy() / 1000.0 - inner["served"]
    for caller, callee in calls:
        rows = inner[(inner["caller"] == caller) & (inner["service"] == callee)]
        after, before = halves(rows)
        if len(after) or len(before):
            (wait, served), (usual_wait, usual_served) = map(times, (after, before))
            rates = real_cases.rounded([len(after) / minutes_after, float(len(before))])
            yield [caller, callee, wait, usual_wait, served, usual_served, *rates]


def times(rows: pd.DataFrame) -> tuple[float | None, float | None]:
    if rows.empty:
        return None, None
    served, beyond = (
        real_cases.rounded(float(rows[name].quantile(0.9))) for name in ("served", "beyond")
    )
    return served + beyond, served


def main(
    petshop_checkout: Annotated[Path, typer.Argument(help="A checkout of PetShop's repository.")],
    nezha_checkout: Annotated[Path, typer.Argument(help="A checkout of Nezha's repository.")],
) -> None:
    """Convert the other half, play rules and rankers on it, and write who finds the root."""
    sources = {"petshop": petshop(petshop_checkout)}
    sources |= {name: nezha(nezha_checkout, name) for name in DAYS}
    with tempfile.TemporaryDirectory() as folder:
        cases.FOLDER = Path(folder)  # where `load_source` looks
        for name, source in sources.items():
            text = json.dumps(source).encode()
            (cases.FOLDER / f"{name}.json.gz").write_bytes(gzip.compress(text))
        frames = [
            play_cases(make_policy(rule, known=RECORDED_POLICIES), name)
            for name in sources
            for rule in RANKED
            if reads(rule, name)
        ]
        for seed, path in enumerate(sorted((ROOT / "runs" / "production").glob("ranker-*.npz"))):
            ranker = ranker_policy(path)
            frames += [play_cases(ranker, name).assign(seed=seed) for name in sources]
    played = pd.concat(frames)
    table = played.groupby(["policy", "source"])["top1"].agg(["mean", "count"])
    seeds = played.groupby(["policy", "source"])["seed"].nunique().clip(lower=1)
    found = pd.DataFrame({"share": table["mean"].round(4), "cases": table["count"] // seeds})
    found.reset_index().to_csv(RESULTS / "other-half.csv", index=False)
    print(found.unstack().to_string())


if __name__ == "__main__":
    typer.run(main)
