"""Commands for the observability service: its resources, reports to it, and the outbox."""
