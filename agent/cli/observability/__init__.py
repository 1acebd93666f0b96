"""Commands for the observability service: its resources, what is sent to it, what waits."""
