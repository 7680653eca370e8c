"""How the real cases in `logtriage/real` are made from the two public repositories, and packed.

    git clone https://github.com/amazon-science/petshop-root-cause-analysis
    git clone https://github.com/IntelligentDDS/Nezha
    python scripts/real_cases.py petshop-root-cause-analysis Nezha          # compare
    python scripts/real_cases.py petshop-root-cause-analysis Nezha --write  # and pack

Every case names its place there (`truth.origin`). It is converted anew and compared with what is
shipped, field by field; `--write` packs what was converted in place of what is shipped.

| what | PetShop | Online Boutique | Train Ticket |
|---|---|---|---|
| services, calls | `graph.csv` | `dependency.csv` | as shipped (see below) |
| metrics, usual, alerts | `metrics.csv`, `target.json` | `*_metric.csv` | `*_metric.csv` |
| users | - | `front_service.csv` | `front_service.csv`, p95 alone |
| calls' times | - | `source_50.csv`, `destination_50.csv` | as shipped |
| log lines and their counts | - | - | as shipped |

Not converted here, and so kept as they are shipped: what comes from Train Ticket's traces and logs
(400 MB): who calls whom, times of calls, log lines. Which of the public cases are shipped is not
derived either: half of those that could be converted, the other half is kept for checking.

Figures are rounded to three significant digits. `usual` is the median of samples without a fault,
`mad` the median distance from it over 0.6745, `range` their 5th and 95th percentile.

What comes out, on the repositories of 2026-11: all 26 cases of PetShop, the 12 of Online Boutique
of 2022-08-23 and the 14 of Train Ticket of 2023-01-29, to the last digit. Of the other two days
(15 and 9 cases) all is the same but what is usual, which differs in the second or third digit: on
those days the texts and the numbers of some injection times disagree by a minute, and which minutes
counted as without a fault could not be told.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from logtriage.real.cases import FOLDER, SOURCES

DEVIATION_OF_SIGMA = 0.6745  # the median distance from the median of a normal distribution
BEFORE, SAMPLES = 2, 6  # of Nezha's window: minutes before the injection, and all
# Seconds after an injection in which Nezha's minutes are without a fault, and to the next one.
CALM_AFTER, CALM_BEFORE = (330, 720), 60
SLOW, FAILS = 3.0, 5.0  # our rules for alerts: times the usual p95, and per cent of users' requests
PETSHOP_METRICS = {  # ours to theirs, and the factor of the unit
    "latency_ms": ("latency", "Average", 1000.0),
    "latency_p95_ms": ("latency", "p95", 1000.0),
    "availability_pct": ("availability", "Average", 1.0),
    "requests": ("requests", "Sum", 1.0),
}
NEZHA_METRICS = {
    "cpu_pct": ("CpuUsageRate(%)", 1.0),
    "memory_pct": ("MemoryUsageRate(%)", 1.0),
    "server_p95_ms": ("PodServerLatencyP95(s)", 1000.0),
    "client_p95_ms": ("PodClientLatencyP95(s)", 1000.0),
    "requests_per_s": ("PodWorkload(Ops)", 1.0),
    "node_cpu_pct": ("NodeCpuUsageRate(%)", 1.0),
}
USERS_METRICS = {
    "latency_p95_ms": ("LatencyP95(s)", 1000.0),
    "success_pct": ("SuccessRate(%)", 1.0),
}

LONGEST = 120  # characters of the command by which a fault was injected

Json = dict[str, Any]


def rounded(value: Any) -> Any:
    """Three significant digits of every figure in a JSON value; None for nan."""
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    if isinstance(value, float):
        return None if np.isnan(value) else float(f"{value:.3g}")
    return value


def series(values: Iterable[float], usual: pd.Series) -> Json:
    """A metric over the window, with what is usual."""
    known, found = usual.dropna(), {"values": [float(value) for value in values]}
    if known.empty:
        return {**found, "usual": None, "mad": None, "range": None}
    middle = float(known.median())
    return {
        "usual": middle,
        "mad": float((known - middle).abs().median()) / DEVIATION_OF_SIGMA,
        "range": [float(one) for one in known.quantile([0.05, 0.95])],
        **found,
    }


# PetShop


def plain(name: str) -> str:
    """A name without spaces."""
    return name.replace(" ", "_")


def petshop_case(folder: Path, origin: str) -> Json:
    """A case of PetShop; `origin` is as in `high_traffic/train/issue_5`."""
    scenario = folder / "dataset" / origin.split("/")[0]
    place = folder / "dataset" / origin
    read: Callable[[Path], pd.DataFrame] = lambda path: pd.read_csv(  # noqa: E731
        path, header=[0, 1, 2], index_col=0
    )
    shown, calm = read(place / "metrics.csv"), read(scenario / "noissue" / "metrics.csv")
    told = json.loads((place / "target.json").read_text())
    graph = pd.read_csv(scenario / "graph.csv", index_col=0)
    alarm = told["target"]
    minutes = [(float(one) - alarm["timestamp"]) / 60.0 for one in shown.index]
    zero = next(at for at, minute in enumerate(minutes) if minute >= 0.0)
    metrics: dict[str, Json] = {}
    for service in graph.index:
        for name, (metric, statistic, factor) in PETSHOP_METRICS.items():
            column = (service, metric, statistic)
            if column in shown and shown[column].notna().any():
                usual = calm[column] if column in calm else pd.Series(dtype=float)
                found = series(shown[column] * factor, usual * factor)
                metrics.setdefault(plain(service), {})[name] = found
    name = "availability_pct" if alarm["metric"] == "availability" else "latency_ms"
    alerted = metrics[plain(alarm["node"])][name]
    return {
        "services": sorted(map(plain, graph.index)),
        "calls": [
            [plain(caller), plain(callee)]
            for caller in graph.index
            for callee in graph.columns
            if graph.loc[caller, callee]
        ],
        "window": {
            "minutes": [round(minute, 1) for minute in minutes],
            "zero": zero,
            "resolution_s": 300,
            "zero_is": "first sample at or after the alarm of the data set",
        },
        "alerts": [
            {
                "service": plain(alarm["node"]),
                "metric": name,
                "value": alerted["values"][zero],
                "usual": alerted["usual"],
            }
        ],
        "metrics": metrics,
        "truth": {
            "root": plain(told["root_cause"]["node"]),
            "fault": told["root_cause"]["metric"] or "",
            "origin": origin,
            "how": told["metadata"]["reproducibility"]["command"][:LONGEST],
        },
    }


# Nezha


def injections(day: Path) -> list[Json]:
    """The faults of a day, in order of time."""
    (listed,) = day.glob("*fault_list.json")
    hours = json.loads(listed.read_text()).values()
    return sorted((one for hour in hours for one in hour), key=lambda one: injected_at(one))


def injected_at(injection: Json) -> int:
    """When, as a Unix time: by the text, as one of the numbers beside it is a minute off."""
    return int(pd.Timestamp(injection["inject_time"], tz="UTC").timestamp())


def times_of(table: pd.DataFrame) -> pd.Series:
    """Unix times of the rows, whole seconds: by the text, as one pod's numbers are years off."""
    told = table.iloc[:, 0].str.slice(0, 19)
    found: pd.Series = pd.to_datetime(told, utc=True) - pd.Timestamp(0, tz="UTC")
    return found.dt.total_seconds().astype(int)


def calm(times: pd.Series, injected: list[int]) -> np.ndarray:
    """Which samples are without a fault: before the first injection or some minutes after one, and
    not right before the next.
    """
    starts, at = np.array(injected), times.to_numpy()
    last = np.searchsorted(starts, at, side="right") - 1
    since = np.where(last >= 0, at - starts[np.maximum(last, 0)], CALM_AFTER[0])
    coming = np.append(starts, np.iinfo(np.int64).max)[last + 1] - at
    after: np.ndarray = (since >= CALM_AFTER[0]) & (since <= CALM_AFTER[1])
    return after & (coming > CALM_BEFORE)


def window_at(times: pd.Series, start: int) -> slice:
    """The places of the samples around an injection."""
    nearest = int((times - start).abs().to_numpy().argmin())
    return slice(nearest - BEFORE, nearest - BEFORE + SAMPLES)


def around(
    table: pd.DataFrame, names: dict[str, tuple[str, float]], start: int, injected: list[int]
) -> dict[str, Json]:
    """These metrics of a table around an injection."""
    times = times_of(table)
    places, usual = window_at(times, start), table[calm(times, injected)]
    return {
        name: series(table[column].iloc[places] * factor, usual[column] * factor)
        for name, (column, factor) in names.items()
        if table[column].iloc[places].notna().any()
    }


def service_of(pod: str) -> str:
    """`ts-food-service-6f6cfc45b-h5m2n` is of `ts-food-service`."""
    return pod.rsplit("-", 2)[0]


def nezha_case(folder: Path, shipped: Json) -> Json:
    """What can be converted of a case of Nezha; the rest as it is shipped."""
    day = folder / "rca_data" / shipped["truth"]["origin"][:10]
    listed = injections(day)
    (own,) = (one for one in listed if one["inject_time"] == shipped["truth"]["origin"])
    start, injected = injected_at(own), [injected_at(one) for one in listed]
    metrics: dict[str, Json] = {}
    for path in sorted((day / "metric").glob("*_metric.csv")):
        service = service_of(path.name.removesuffix("_metric.csv"))
        if service in shipped["services"]:
            metrics[service] = around(pd.read_csv(path), NEZHA_METRICS, start, injected)
    case = {
        **shipped,
        "metrics": metrics,
        "truth": {
            **shipped["truth"],
            "root": service_of(own["inject_pod"]),
            "fault": own["inject_type"],
        },
    }
    if "users" in shipped:
        front = pd.read_csv(day / "metric" / "front_service.csv")
        users = around(front, USERS_METRICS, start, injected)
        # Where all of them fail all day, success was not counted.
        case["users"] = {name: one for name, one in users.items() if one["usual"]}
    if (day / "metric" / "dependency.csv").is_file():
        called = pd.read_csv(day / "metric" / "dependency.csv")
        pairs = sorted(zip(called["Source"], called["Target"], strict=True))
        case["calls"] = [list(one) for one in pairs if set(one) <= set(shipped["services"])]
        case["edges"] = {**shipped["edges"], "rows": list(call_rows(day, case, start, injected))}
    case["alerts"] = [*users_alerts(case), *slow_alerts(case)]
    return case


def call_rows(day: Path, case: Json, start: int, injected: list[int]) -> Iterator[list[Any]]:
    """For each call: the highest of the minutes after, the usual and the 95th percentile then, of
    the caller's median wait and of the callee's median time.
    """
    tables = [pd.read_csv(day / "metric" / f"{side}_50.csv") for side in ("source", "destination")]
    for caller, callee in case["calls"]:
        row: list[Any] = [caller, callee]
        for table in tables:
            times, values = times_of(table), table[f"{caller}_{callee}"] * 1000.0
            shown = values.iloc[window_at(times, start)].iloc[BEFORE + 1 :]
            usual = values[calm(times, injected)]
            row += [float(shown.max()), float(usual.median()), float(usual.quantile(0.95))]
        yield row


def slow_alerts(case: Json) -> Iterator[Json]:
    """Who is slow by our rule."""
    for service, metrics in sorted(case["metrics"].items()):
        known = metrics.get("server_p95_ms", {"values": [], "usual": None})
        after = max((one for one in known["values"][BEFORE + 1 :] if one == one), default=0.0)
        if known["usual"] and after > SLOW * known["usual"]:
            found = {"metric": "server_p95_ms", "value": after, "usual": known["usual"]}
            yield {"service": service, **found}


def users_alerts(case: Json) -> Iterator[Json]:
    """Whether users fail by our rule, told of the service where they enter."""
    known = case.get("users", {}).get("success_pct")
    if known is not None:
        failed = 100.0 - min(known["values"][BEFORE + 1 :])
        if failed > FAILS:
            entries = set(case["services"]) - {callee for _, callee in case["calls"]}
            found = {"metric": "errors_pct", "value": failed}
            yield {"service": min(entries), **found, "usual": 100.0 - known["usual"]}


# Shipped files


def read_shipped(source: str) -> Json:
    """A shipped source as JSON."""
    found: Json = json.loads(gzip.decompress((FOLDER / f"{source}.json.gz").read_bytes()))
    return found


def packed(source: Json) -> bytes:
    """A source as it is shipped: the same bytes for the same cases."""
    text = json.dumps(source, separators=(",", ":"), ensure_ascii=False)
    return gzip.compress(text.encode(), 9, mtime=0)


def converted(source: str, shipped: Json, petshop: Path, nezha: Path) -> Json:
    """A shipped case anew."""
    if source == "petshop":
        case = petshop_case(petshop, shipped["truth"]["origin"])
        # The data set has no name for a kind of fault; that of its command is ours.
        case["truth"]["fault"] = shipped["truth"]["fault"]
        return {name: case.get(name, value) for name, value in shipped.items()}
    return nezha_case(nezha, shipped)


def differences(one: Any, other: Any, at: str = "") -> list[str]:
    """Where two JSON values differ, as paths."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = sorted({*one, *other})
        return [
            path
            for key in keys
            for path in differences(one.get(key), other.get(key), f"{at}/{key}")
        ]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [path for i, pair in pairs for path in differences(*pair, f"{at}/{i}")]
    return [] if one == other else [f"{at}: {one!s:.60} is not {other!s:.60}"]


def main() -> None:
    """Compare, and pack when asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("petshop", type=Path, help="clone of the PetShop repository")
    parser.add_argument("nezha", type=Path, help="clone of the Nezha repository")
    parser.add_argument("--write", action="store_true", help="pack what was converted")
    asked = parser.parse_args()
    for name in SOURCES:
        source, same = read_shipped(name), 0
        cases = [
            rounded(converted(name, one, asked.petshop, asked.nezha)) for one in source["cases"]
        ]
        for case, shipped in zip(cases, source["cases"], strict=True):
            found = differences(case, shipped)
            same += not found
            for path in found[:5]:
                print(f"{shipped['id']}{path}")
        print(f"{name}: {same} of {len(cases)} cases come out as they are shipped")
        if asked.write:
            (FOLDER / f"{name}.json.gz").write_bytes(packed({**source, "cases": cases}))


if __name__ == "__main__":
    main()
