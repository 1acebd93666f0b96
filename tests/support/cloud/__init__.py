"""The stand-in cloud, calls of it and of services that answer wrongly."""
