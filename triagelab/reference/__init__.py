"""The exact posterior over incidents, and the policy that plays by it: the computed ceiling."""
