"""Provisioning: a pure plan, a bench that runs it, and a ledger that outlives both."""
