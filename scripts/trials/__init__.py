"""How bench/ and soak/ are run, measured and put on their pages."""
