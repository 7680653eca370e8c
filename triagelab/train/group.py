"""One group of GRPO to look at: several answers to one incident, their rewards and advantages.

plot_group(play_group("base", "cascading_failure", 3))
"""

from random import Random

import numpy as np
import pandas as pd
from matplotlib.colors import LinearSegmentedColormap

from logtriage.play.episode import Episode
from logtriage.play.tools import ToolSession

from ..bench.plots import FAINT, SMALL, TRAINED, Picture, new_figure
from ..language_models.language_models import LanguageModelPolicy
from ..language_models.loading import load_language_model
from ..language_models.path_names import names_for
from .loop import ANSWERS, group_advantages

HEADS = ("severity", "root cause", "remedy", "team", "all other words")


def play_group(model: str, task: str, index: int, size: int = 8) -> pd.DataFrame:
    """Sample `size` episodes of one incident of `train`, as a step of GRPO does. One row per
    episode, the best first: its `reward`, and for each of `HEADS` a pair of what was answered
    first (empty if nothing was) and the advantage of that answer.
    """
    loaded, tokenizer = load_language_model(model)
    policy = LanguageModelPolicy(loaded, tokenizer, "group", temperature=1.0, constrained=True)
    names = names_for(loaded.config.to_dict())
    sessions = [ToolSession(Episode.open(task, "train", index), names) for _ in range(size)]
    policy.converse(sessions, [Random(f"group/{number}") for number in range(size)])
    rewards = [session.reward() for session in sessions]  # closes what is still open
    rows = []
    for session, reward, given in zip(sessions, rewards, group_advantages(sessions), strict=True):
        cells = dict.fromkeys(HEADS, ("", np.nan)) | {HEADS[-1]: ("", given.outside)}
        for step, advantage in zip(session.episode.history, given.calls, strict=False):
            kind = step.action.type if step.action else ""
            head = HEADS[ANSWERS.index(kind)] if kind in ANSWERS else ""
            if step.action and head and not cells[head][0]:  # a later answer counts no more
                cells[head] = (step.action.args[0], advantage)
        rows.append({"reward": reward, **cells})
    return pd.DataFrame(rows).sort_values("reward", ascending=False, ignore_index=True)


def plot_group(group: pd.DataFrame) -> Picture:
    """Draw a group as a table: one row per episode, with its reward at the left. A blue answer is
    above the mean of the group and becomes likelier, a grey one is below it.
    """
    figure, axes = new_figure(0.6 + 0.4 * len(group))
    ax, cells = axes[0, 0], group[[*HEADS]].to_numpy()
    values = np.array([[advantage for _, advantage in row] for row in cells])
    most = max(0.01, np.nanmax(np.abs(values)))
    colours = LinearSegmentedColormap.from_list("", [FAINT, "white", TRAINED])
    ax.imshow(values, colours, vmin=-most, vmax=most, aspect="auto", alpha=0.75)
    for (y, x), advantage in np.ndenumerate(values):
        text = f"{cells[y, x][0]}\n{advantage:+.2f}".strip()
        cell = "no answer" if np.isnan(advantage) else text
        ax.text(x, y, cell, ha="center", va="center", fontsize=SMALL)
    ax.set_xticks(range(len(HEADS)), HEADS)
    ax.set_yticks(range(len(group)), [f"reward {reward:.2f}" for reward in group["reward"]])
    ax.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
    ax.spines[:].set_visible(False)
    return figure
