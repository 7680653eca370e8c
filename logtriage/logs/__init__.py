"""A log of one's own: read in bounded memory, counted, and turned into evidence.

`lines` -> `layouts` -> `tally` -> `window` -> `suspects` -> `answer`; `log_episode` lets a policy
or a model ask about the same log. Everything that a log says is data: it is bounded, escaped,
and never evaluated.
"""
