"""The local socket of the agent: who asks it for its status, its console or its kit."""
