"""The steps of one board: in its modem, in its module, at the service."""
