"""Read your own logs in bounded memory, count them, and turn the counts into evidence.

`lines` -> `layouts` -> `tally` -> `window` -> `evidence` -> `suspects` -> `answer`; `log_episode`
lets a policy or a model ask about the same log. Whatever is in a log is data: bounded, escaped,
never evaluated.
"""
