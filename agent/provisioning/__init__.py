"""Provisioning: boards, the plan for each, the run that carries it out, and the ledger of both."""
