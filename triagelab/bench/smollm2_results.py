"""What SmolLM2 scores before and after each stage of learning, on the same held-out incidents."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from logtriage.world.tasks import TASKS

from .intervals import KEYS, Interval, compare_recipes, holm, matched, two_way_mean, verdict
from .plots import Picture, plot_policies, words
from .published import played_by, read
from .results_tables import NEW, table
from .score_tables import REFERENCE, policy_scores
from .smollm2_stages import (
    AVERAGED,
    CORRECTED,
    FILE,
    GRPO,
    HELD,
    ON_SPLITS,
    SEEDS,
    STAGES,
    WAYS,
    policy_of,
)
from .strata import values_in, with_truth

COMPARED: tuple[tuple[str, Sequence[str], str], ...] = (
    # The stage before, that after or the seeds of that, and how they played.
    ("novice/base", ["novice/seed-1/model"], "constrained"),
    ("novice/base", ["novice/seed-1/model"], "sampled"),
    ("novice/again", ["novice/more"], "constrained"),
    *(("expert/base", [seed], "constrained") for seed in SEEDS),
    ("expert/base", SEEDS, "constrained"),
    ("expert/base", [AVERAGED], "constrained"),
    *(("expert/base", [seed], "sampled") for seed in SEEDS),
    ("expert/base", SEEDS, "sampled"),
    ("expert/base", [AVERAGED], "sampled"),
    ("expert/base", [CORRECTED], "constrained"),
    (AVERAGED, [CORRECTED], "constrained"),
    (CORRECTED, ["expert/on-policy-grpo/model"], "sampled"),
    ("expert/base", ["expert/more"], "constrained"),
    ("expert/more", SEEDS, "constrained"),
    ("expert/more", [AVERAGED], "constrained"),
    ("expert/more", ["expert/more-grpo/model"], "constrained"),
)


def embedded_names(track: str) -> dict[str, str]:
    """What the embedded agent of a track is called before and after GRPO, by its policies."""
    return {"base": f"embedded: {track}'s lessons", "trained": f"embedded: {track}'s, then GRPO"}


def _beside(frame: pd.DataFrame, track: str) -> pd.DataFrame:
    """The reference and the first seed of a track's agent, on the incidents of a frame."""
    scripts, names = read("benchmark/episodes.parquet"), embedded_names(track)
    embedded = played_by(track)[0]
    embedded = embedded[embedded["policy"].isin(names)].replace({"policy": names})
    rows = pd.concat([scripts[scripts["policy"] == REFERENCE], embedded])
    return rows.merge(frame[KEYS].drop_duplicates(), on=KEYS)


def _on_test() -> tuple[pd.DataFrame, pd.DataFrame]:
    """The episodes of all stages on `test`, and those of others on the same incidents."""
    frame = read(FILE)
    order = [f"{stage}, {way}" for stage in ("zero-shot", *STAGES.values()) for way in WAYS]
    frame = frame[frame["split"] == "test"].sort_values(
        "policy", key=lambda names: names.map(order.index), kind="stable"
    )
    return frame, _beside(frame, "novice")


def _held(frame: pd.DataFrame) -> pd.DataFrame:
    """The episodes that the grammar held, by the names of their stages."""
    held = frame[frame["policy"].str.endswith(HELD)]
    return held.assign(policy=held["policy"].str.removesuffix(HELD))


def listed_stages() -> dict[str, list[pd.DataFrame]]:
    """The episodes on `test`, held by the grammar, of the model itself, after an expert's lessons,
    more of them, corrections and GRPO: one frame per seed, and their average. The names say how
    many incidents of each task there are.
    """
    held, learned = _held(_on_test()[0]), [STAGES[seed] for seed in SEEDS]
    alone = [STAGES[name] for name in ("expert/base", "expert/more", AVERAGED, CORRECTED)]
    stages = {name: [name] for name in ("zero-shot", *alone)}
    stages[f"{GRPO}, {len(SEEDS)} seeds"] = learned
    listed = {}
    for name, played in stages.items():
        frames = [held[held["policy"] == stage].assign(policy=name) for stage in played]
        listed[f"SmolLM2: {name}, {frames[0]['index'].nunique()} incidents"] = frames
    return listed


def stages_table(*ways: str) -> str:
    """Scores of all stages that played in these ways, with their intervals, and what became of
    faults and false alarms.
    """
    frame, beside = _on_test()
    frame = frame[frame["policy"].str.endswith(ways)]
    everyone = pd.concat([frame, beside])
    detected = with_truth(everyone)
    for name in ("faults_detected", "false_alarms_dismissed"):
        detected[name] = values_in(detected, name)
    shares = detected.groupby("policy")[["faults_detected", "false_alarms_dismissed"]].mean()
    made, refused = frame["calls"].sum(), frame["malformed"].sum()
    sampled = ""
    if "sampled" in ways:
        sampled = " Sampled, SmolLM2 plays by the grammar, at temperature 1, as GRPO does."
    incidents = everyone.groupby("policy")["index"].nunique()
    rows = []
    for row in policy_scores(everyone).to_dict("records"):
        name = row["policy"]
        cells = {"SmolLM2": name, "incidents": str(incidents[name])}
        cells |= {words(task): row[task] for task in TASKS}
        cells["mean"] = row["mean"].mean
        cells[f"share of `{REFERENCE}`"] = row["share_of_reference"].mean
        cells["roots found"] = shares["faults_detected"][name]
        cells["false alarms dismissed"] = shares["false_alarms_dismissed"][name]
        rows.append(cells)
    return table(
        rows,
        "The first incidents of each task of `test`, 95 % bootstrap intervals over"
        f" incidents.{sampled} Of {made:,.0f} calls {refused:.0f} were refused. The last rows are"
        " of others on the same incidents; the embedded agent's are of the first of five seeds,"
        " the best.",
    )


def _gains(frame: pd.DataFrame, before: str, after: Sequence[str]) -> list[np.ndarray]:
    """How much higher some policies score than one before on the same incidents, by task: arrays
    (policies, incidents). `ValueError` if one of them lacks an incident of another.
    """

    def gain(task: str, name: str) -> np.ndarray:
        own = frame[frame["task"] == task]
        old, new = (own[own["policy"] == policy] for policy in (before, name))
        scores = matched(old, new)
        return np.asarray(scores[1] - scores[0])

    return [np.stack([gain(task, name) for name in after]) for task in TASKS]


def gains_table() -> str:
    """How much higher one stage scores than another on the same incidents, for `COMPARED`."""
    frame = with_truth(_on_test()[0])
    rows = []
    for stage, learned, way in COMPARED:
        before, after = policy_of(stage, way), [policy_of(name, way) for name in learned]
        gained, called = _gains(frame, before, after), STAGES[learned[0]]
        if len(learned) > 1:
            called = f"{GRPO}, {len(learned)} seeds"
            gains = [f"{two_way_mean([own]):.2f}" for own in gained]
        else:
            gains = _of_one_seed(gained)
        cells: dict[str, Any] = {"from": STAGES[stage], "to": called, "play": way}
        cells |= {words(task): gain for task, gain in zip(TASKS, gains, strict=True)}
        of_faults = _gains(frame[frame["real"]], before, after)
        cells |= {"mean": two_way_mean(gained), "mean, real faults alone": two_way_mean(of_faults)}
        rows.append(cells)
    return table(
        rows,
        "Gains in score, paired by incident, with 95 % intervals (of tasks by t over incidents; of"
        " the mean, and of several seeds, by bootstrap over incidents and seeds). Bold: better"
        " after Holm's correction over the tasks.",
    )


def _of_one_seed(gained: list[np.ndarray]) -> list[str]:
    """The gain on each task with its t interval; in bold where it is better after correction."""
    gains = [compare_recipes(np.zeros(own.shape[1]), own[0], paired=True) for own in gained]
    adjusted = holm([p for _, p in gains])
    return [
        f"**{gain:.2f}**" if verdict(gain.mean, p, corrected) == "better" else f"{gain:.2f}"
        for (gain, p), corrected in zip(gains, adjusted, strict=True)
    ]


def _on_splits() -> tuple[pd.DataFrame, pd.DataFrame]:
    """The episodes of those that play all splits, and those of others on the same incidents."""
    frame = _held(read(FILE))
    frame = frame[frame["policy"].isin(ON_SPLITS)].replace({"policy": ON_SPLITS})
    return frame, _beside(frame, "expert")


def new_splits_table() -> str:
    """Shares of the reference's score on each split, of SmolLM2 and the embedded agent, both taught
    by an expert, and then by reward or corrections; and what SmolLM2 gained by either.
    """
    frame, beside = _on_splits()
    scores = policy_scores(pd.concat([frame, beside]))
    shares = scores.set_index(["split", "policy"])["share_of_reference"]
    counts = frame.groupby("split")["index"].nunique()
    stages = [*ON_SPLITS.values()][1:]  # zero-shot is .02 at most
    embedded = embedded_names("expert").values()
    rows = []
    for split, new in NEW.items():
        if split not in counts:
            continue
        cells: dict[str, Any] = {"split": f"`{split}`", "what is new": new}
        cells["incidents of each task"] = str(counts[split])
        cells |= {name: shares[split, name] for name in stages}
        own = frame[frame["split"] == split]
        for stage in stages[1:]:
            gained = two_way_mean(_gains(own, stages[0], [stage]))
            cells[stage.replace("SmolLM2: then", "gain by")] = gained
        rows.append(cells | {name: shares[split, name] for name in embedded})
    return table(
        rows,
        f"Shares of `{REFERENCE}`'s mean score on the same incidents, and the gain in"
        " score, with 95 % intervals. The embedded agent's are of the first seed.",
    )


def stage_facts() -> dict[str, Any]:
    """Mean scores over the tasks, where the grammar holds: `smollm2.zero` as the model is,
    `smollm2.expert` after an expert's lessons. GRPO from there gains `smollm2.gain` over all seeds,
    `smollm2.gain.1` and so on with each, `smollm2.averaged` if their weights are averaged, and
    `smollm2.over_more` over as much more imitation, which gains `smollm2.more`. Corrections in own
    play gain `smollm2.corrected`. All are of the `smollm2.incidents` of each task. In sampled play
    the seeds gain `smollm2.sampled`. More of the novice's lessons, the control of GRPO there, gain
    `smollm2.novice_more`. `smollm2.roots.lessons` and so on say how many real roots of all splits
    are found, `smollm2.dismissed.alarms` and `.faults` how many false alarms and faults are
    dismissed after corrections.
    """
    frame, _ = _on_test()
    means = frame.groupby(["policy", "task"])["score"].mean().groupby("policy").mean()

    def gain(before: str, *after: str, way: str = "constrained") -> Interval:
        learned = [policy_of(stage, way) for stage in after]
        return two_way_mean(_gains(frame, policy_of(before, way), learned))

    learned, held = [policy_of(seed) for seed in SEEDS], with_truth(_held(read(FILE)))
    each: dict[str, Any] = {
        f"smollm2.gain.{seed}": gain("expert/base", name) for seed, name in enumerate(SEEDS, 1)
    }
    return each | {
        "smollm2.zero": means["zero-shot, constrained"],
        "smollm2.expert": means[policy_of("expert/base")],
        "smollm2.gain": gain("expert/base", *SEEDS),
        "smollm2.sampled": gain("expert/base", *SEEDS, way="sampled"),
        "smollm2.averaged": gain("expert/base", AVERAGED),
        "smollm2.corrected": gain("expert/base", CORRECTED),
        "smollm2.more": gain("expert/base", "expert/more"),
        "smollm2.over_more": gain("expert/more", *SEEDS),
        "smollm2.novice_more": gain("novice/again", "novice/more"),
        "smollm2.incidents": f"{frame[frame['policy'].isin(learned)]['index'].nunique()}",
        "smollm2.roots.lessons": _counted(held, "expert/base", "faults_detected"),
        "smollm2.roots.averaged": _counted(held, AVERAGED, "faults_detected"),
        "smollm2.roots.corrected": _counted(held, CORRECTED, "faults_detected"),
        "smollm2.dismissed.alarms": _counted(held, CORRECTED, "false_alarms_dismissed"),
        "smollm2.dismissed.faults": _counted(held, CORRECTED, "faults_dismissed"),
    }


def _counted(held: pd.DataFrame, stage: str, stratum: str) -> str:
    """In how many of its incidents, on all splits, a stage did what a stratum says."""
    values = values_in(held[held["policy"] == STAGES[stage]], stratum)
    return f"{np.nansum(values):.0f} of {np.isfinite(values).sum()}"


def plot_stages() -> Picture:
    """Plot the stages that the grammar holds, beside the embedded agent and the reference."""
    frame, beside = _on_test()
    return plot_policies(pd.concat([_held(frame), beside]))


def plot_splits() -> Picture:
    """Plot the same for the splits with something new, one panel for each, over all tasks."""
    rows = pd.concat(_on_splits())
    rows = pd.concat([rows[rows["split"] == split] for split in NEW if split != "test"])
    incidents = rows["task"] + rows["index"].astype(str)
    return plot_policies(rows.assign(task=rows["split"], index=incidents))
