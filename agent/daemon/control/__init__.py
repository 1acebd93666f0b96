"""The control socket: other programs ask the running agent for status, a hold, a lease."""
