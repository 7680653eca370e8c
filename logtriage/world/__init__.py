"""The world: a call graph, faults, the cluster's dynamics, incidents, and what may be seen of them."""
