"""The AT driver: any nRF91 kit, real, recorded or virtual. Usable without the agent."""
