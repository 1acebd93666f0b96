"""Provisioning: a pure plan for each board, the run that carries it out, and the ledger of both."""
