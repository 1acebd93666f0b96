"""Parts put together for commands and the daemon: a client, forwarding, an update runner."""
