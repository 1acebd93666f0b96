"""Projects, devices, issues, releases: the resources and their methods."""
