"""`cellagent run`, `status`, `hold` and `reload`: the agent and those who ask it."""
