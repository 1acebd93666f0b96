"""Credentials: how each kind is made, sent and renewed, and what a refusal of it means."""
