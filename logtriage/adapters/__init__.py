"""Other people's interfaces: episodes on a server, MCP, Inspect, Harbor, verifiers."""
