"""The runs of boards: a batch of them, each step of one, and what becomes of it."""
