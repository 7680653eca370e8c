"""How the real cases in `logtriage/real` are made from the two public repositories, and packed.

    git clone https://github.com/amazon-science/petshop-root-cause-analysis
    git clone https://github.com/IntelligentDDS/Nezha
    python scripts/real_cases.py petshop-root-cause-analysis Nezha          # compare
    python scripts/real_cases.py petshop-root-cause-analysis Nezha --write  # and pack

Every case names its place there (`truth.origin`). It is converted again and compared with what is
shipped, field by field; `--write` packs the converted cases in place of the shipped ones.

| what | PetShop | Online Boutique | Train Ticket |
|---|---|---|---|
| services, calls | `graph.csv` | `dependency.csv` | as shipped |
| measures, alerts | `metrics.csv`, `target.json` | `*_metric.csv` | `*_metric.csv` |
| users | - | `front_service.csv` | `front_service.csv`, p95 alone |
| times of calls | - | `source_50.csv`, `destination_50.csv` | as shipped |
| log lines and their counts | - | - | as shipped |

What comes from Train Ticket's traces and logs (400 MB) is not converted here. Half of the cases
that could be converted are shipped, the other half is kept for checking.

On the repositories of 2026-11 all 26 cases of PetShop, the 12 of Online Boutique of 2022-08-23 and
the 14 of Train Ticket of 2023-01-29 come out to the last digit. On the other two days (15 and 9
cases) baselines differ in the second or third digit: texts and numbers of
some injection times disagree by a minute, and which minutes counted as without a fault is unknown.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from logtriage.real.cases import FOLDER, SOURCES

SIGMA = 0.6745  # the median distance from the median of a normal distribution, in its sigma
BEFORE, SAMPLES = 2, 6  # of Nezha's window: minutes before the injection, and all
# Seconds after an injection in which Nezha's minutes are without a fault, and to the next one.
CALM_AFTER, CALM_BEFORE = (330, 720), 60
SLOW, FAILS = 3.0, 5.0  # our rules for alerts: times the baseline p95, and per cent of requests
LONGEST = 120  # characters of the command by which a fault was injected
# Name and unit of a measure, where the source has it, and the factor of the unit.
PETSHOP_MEASURES = (
    ("latency", "ms", ("latency", "Average"), 1000.0),
    ("p95", "ms", ("latency", "p95"), 1000.0),
    ("available", "%", ("availability", "Average"), 1.0),
    ("requests", "", ("requests", "Sum"), 1.0),
)
NEZHA_MEASURES = (
    ("cpu", "%", "CpuUsageRate(%)", 1.0),
    ("memory", "%", "MemoryUsageRate(%)", 1.0),
    ("p95", "ms", "PodServerLatencyP95(s)", 1000.0),
    ("p95 of its calls", "ms", "PodClientLatencyP95(s)", 1000.0),
    ("requests", "/s", "PodWorkload(Ops)", 1.0),
    ("node cpu", "%", "NodeCpuUsageRate(%)", 1.0),
)
USERS_MEASURES = (("p95", "ms", "LatencyP95(s)", 1000.0), ("success", "%", "SuccessRate(%)", 1.0))

Json = dict[str, Any]
Row = list[Any]  # the fields of `Measure`, `CallTime` or `Alert`, in order


def rounded(value: Any) -> Any:
    """Three significant digits of every figure in a JSON value; None for nan."""
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    if isinstance(value, float):
        return None if np.isnan(value) else float(f"{value:.3g}")
    return value


def measure(service: str, name: str, unit: str, values: Iterable[float], calm: pd.Series) -> Row:
    """A measure over the window, its baseline from the values of `calm` times."""
    known, shown = calm.dropna(), [float(value) for value in values]
    if known.empty:
        return [service, name, unit, shown, None, None, None, None]
    middle = float(known.median())
    low, high = (float(one) for one in known.quantile([0.05, 0.95]))
    deviation = float((known - middle).abs().median()) / SIGMA
    return [service, name, unit, shown, middle, low, high, deviation]


def petshop_case(folder: Path, shipped: Json) -> Json:
    """A case of PetShop; its origin is as in `high_traffic/train/issue_5`."""
    place = folder / "dataset" / shipped["truth"]["origin"]
    scenario = place.parents[1]
    shown, calm = (
        pd.read_csv(path / "metrics.csv", header=[0, 1, 2], index_col=0)
        for path in (place, scenario / "noissue")
    )
    target = json.loads((place / "target.json").read_text())
    alarm, cause = target["target"], target["root_cause"]
    graph = pd.read_csv(scenario / "graph.csv", index_col=0)
    minutes = [(float(one) - alarm["timestamp"]) / 60.0 for one in shown.index]
    zero = next(at for at, minute in enumerate(minutes) if minute >= 0.0)
    plain = {name: name.replace(" ", "_") for name in graph.index}
    rows = []
    for service in sorted(graph.index, key=plain.__getitem__):
        for name, unit, where, factor in PETSHOP_MEASURES:
            column = (service, *where)
            if column in shown and shown[column].notna().any():
                usual = calm[column] * factor if column in calm else pd.Series(dtype=float)
                rows.append(measure(plain[service], name, unit, shown[column] * factor, usual))
    failed = alarm["metric"] == "availability"
    alerted = [plain[alarm["node"]], "available" if failed else "latency"]
    value = next(rounded(row[3][zero]) for row in rows if row[:2] == alerted)
    alert = [alerted[0], "errors", 100.0 - value] if failed else [*alerted, value]
    return {
        **shipped,
        "services": sorted(plain.values()),
        "calls": [
            [plain[caller], plain[callee]]
            for caller in graph.index
            for callee in graph.columns
            if graph.loc[caller, callee]
        ],
        "window": {
            **shipped["window"],
            "minutes": [round(minute, 1) for minute in minutes],
            "zero": zero,
        },
        "measures": rounded(rows),
        "alerts": rounded([alert]),
        # The data set has no name for a kind of fault: that of its command is ours.
        "truth": {
            **shipped["truth"],
            "root": plain[cause["node"]],
            "how": target["metadata"]["reproducibility"]["command"][:LONGEST],
        },
    }


def injected_at(injection: Json) -> int:
    """Unix time of an injection: by the text, as one of the numbers beside it is a minute off."""
    return int(pd.Timestamp(injection["inject_time"], tz="UTC").timestamp())


def times_of(table: pd.DataFrame) -> pd.Series:
    """Unix times of the rows, whole seconds: by the text, as one pod's numbers are years off."""
    found = pd.to_datetime(table.iloc[:, 0].str.slice(0, 19), utc=True)
    return (found - pd.Timestamp(0, tz="UTC")).dt.total_seconds().astype(int)


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


def service_of(pod: str) -> str:
    """`ts-food-service-6f6cfc45b-h5m2n` is of `ts-food-service`."""
    return pod.rsplit("-", 2)[0]


def nezha_case(folder: Path, shipped: Json) -> Json:
    """What can be converted of a case of Nezha; the rest as it is shipped."""
    day = folder / "rca_data" / shipped["truth"]["origin"][:10]
    (listed,) = day.glob("*fault_list.json")
    faults = [one for hour in json.loads(listed.read_text()).values() for one in hour]
    (own,) = (one for one in faults if one["inject_time"] == shipped["truth"]["origin"])
    start, injected = injected_at(own), sorted(map(injected_at, faults))

    def around(service: str, path: Path, names: Iterable[tuple[str, str, str, float]]) -> list[Row]:
        table = pd.read_csv(path)
        times = times_of(table)
        places, usual = window_at(times, start), table[calm(times, injected)]
        return [
            measure(
                service, name, unit, table[column].iloc[places] * factor, usual[column] * factor
            )
            for name, unit, column, factor in names
            if table[column].iloc[places].notna().any()
        ]

    paths = {service_of(path.name): path for path in sorted((day / "metric").glob("*_metric.csv"))}
    services = [name for name in shipped["services"] if name in paths]
    rows = [row for name in services for row in around(name, paths[name], NEZHA_MEASURES)]
    case = {**shipped, "measures": rows}
    case["truth"] = {**case["truth"], "root": service_of(own["inject_pod"])}
    case["truth"]["fault"] = own["inject_type"]
    if "users" in shipped:
        users = around("users", day / "metric" / "front_service.csv", USERS_MEASURES)
        case["users"] = [row for row in users if row[4]]  # where all fail all day, none was counted
    if (day / "metric" / "dependency.csv").is_file():
        called = pd.read_csv(day / "metric" / "dependency.csv")
        pairs = sorted(zip(called["Source"], called["Target"], strict=True))
        case["calls"] = [list(one) for one in pairs if set(one) <= set(shipped["services"])]
        case["call_times"] = rounded(list(call_times(day, case["calls"], start, injected)))
    case["alerts"] = [*users_alerts(case), *slow_alerts(case)]
    return {**case, **{name: rounded(case[name]) for name in ("measures", "users", "alerts")}}


def call_times(day: Path, calls: list[Row], start: int, injected: list[int]) -> Iterator[Row]:
    """For each call the highest of the minutes after, and the baseline, of the caller's median wait
    and of the callee's median time.
    """
    tables = [pd.read_csv(day / "metric" / f"{side}_50.csv") for side in ("source", "destination")]
    for caller, callee in calls:
        row: Row = [caller, callee]
        for table in tables:
            times, values = times_of(table), table[f"{caller}_{callee}"] * 1000.0
            shown = values.iloc[window_at(times, start)].iloc[BEFORE + 1 :]
            row += [float(shown.max()), float(values[calm(times, injected)].median())]
        yield [*row, None, None]  # rates of calls are not counted


def slow_alerts(case: Json) -> Iterator[Row]:
    """Which services are slow by our rule."""
    for service, name, _, values, usual, *_ in sorted(case["measures"], key=lambda row: row[0]):
        after = max((one for one in values[BEFORE + 1 :] if one == one), default=0.0)
        if name == "p95" and usual and after > SLOW * usual:
            yield [service, "p95", after]


def users_alerts(case: Json) -> Iterator[Row]:
    """Whether users fail by our rule: an alert on the service where they enter."""
    for row in case.get("users", ()):
        failed = 100.0 - min(row[3][BEFORE + 1 :])
        if row[1] == "success" and failed > FAILS:
            entries = set(case["services"]) - {callee for _, callee in case["calls"]}
            yield [min(entries), "errors", failed]


def packed(source: Json) -> bytes:
    """A source as it is shipped: the same bytes for the same cases."""
    text = json.dumps(source, separators=(",", ":"), ensure_ascii=False)
    return gzip.compress(text.encode(), 9, mtime=0)


def main() -> None:
    """Compare, and pack when asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("petshop", type=Path, help="clone of the PetShop repository")
    parser.add_argument("nezha", type=Path, help="clone of the Nezha repository")
    parser.add_argument("--write", action="store_true", help="pack what was converted")
    asked = parser.parse_args()
    for name in SOURCES:
        path = FOLDER / f"{name}.json.gz"
        source = json.loads(gzip.decompress(path.read_bytes()))
        convert, folder = (
            (petshop_case, asked.petshop) if name == "petshop" else (nezha_case, asked.nezha)
        )
        cases = [convert(folder, shipped) for shipped in source["cases"]]
        for case, shipped in zip(cases, source["cases"], strict=True):
            if different := [key for key in case if case[key] != shipped.get(key)]:
                print(f"{shipped['id']} differs in {', '.join(different)}")
        same = sum(map(dict.__eq__, cases, source["cases"]))
        print(f"{name}: {same} of {len(cases)} cases come out as they are shipped")
        if asked.write:
            path.write_bytes(packed({**source, "cases": cases}))


if __name__ == "__main__":
    main()
