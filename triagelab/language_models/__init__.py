"""Language models as policies: chat template, decoder, loading, endpoint."""
