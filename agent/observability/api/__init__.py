"""The resources of the observability service: projects, devices, releases, keys."""
