"""The world: a call graph, faults, the cluster, incidents, and what may be seen of them."""
