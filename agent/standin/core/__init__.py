"""The HTTP server of the stand-in: operations, their checks, their documents."""
