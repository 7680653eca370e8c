"""Read your own logs in bounded memory, count them, and turn the counts into evidence.

`lines` -> `layouts` -> `tally` -> `window` -> `suspects` -> `answer`; `log_episode` lets a policy
or a model ask about the same log. Everything in a log is treated as data: it is bounded, escaped,
and never evaluated.
"""
