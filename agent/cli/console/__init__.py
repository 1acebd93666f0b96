"""`cellagent console`: the logs of a kit, live; where they come from and where they go."""
