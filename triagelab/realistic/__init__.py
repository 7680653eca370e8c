"""Incidents as messy as those of real clusters, in the schema of the recorded cases."""
