"""Credentials, one file for each kind: how it is made, sent, renewed, and what a refusal means."""
