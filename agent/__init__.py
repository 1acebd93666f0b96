"""cellagent: the agent of a cellular device, on the host that its kit hangs off."""

__version__ = "0.2.0"
