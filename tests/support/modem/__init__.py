"""Modems and ports: virtual, scripted, served, hostile; what they answer and must not show."""
