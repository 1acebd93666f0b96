"""One kit of the agent: its link, console, identity, positions, updates and events."""
