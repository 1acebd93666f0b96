"""Mutants of the code: how they are made and drawn, the trees in which they are tried."""
