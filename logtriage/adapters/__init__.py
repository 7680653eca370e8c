"""Other people's interfaces: episodes on a server, verifiers."""
