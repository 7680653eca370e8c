"""Policies: from what was seen to the next action."""
