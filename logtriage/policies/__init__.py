"""Policies, which map what was seen to the next action."""
