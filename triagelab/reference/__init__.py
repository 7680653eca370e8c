"""The exact posterior over incidents, and the near-optimal policy that plays by it."""
