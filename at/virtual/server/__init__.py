"""Serves a virtual modem on pseudo-terminals and TCP ports."""
