"""The world: a call graph, faults, the cluster, incidents, and what can be seen of them."""
