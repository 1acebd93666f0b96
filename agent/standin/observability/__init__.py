"""The stand-in of the observability service."""
