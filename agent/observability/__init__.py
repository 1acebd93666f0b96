"""The observability service and the wire formats of what devices push to it."""
