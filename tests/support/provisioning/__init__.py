"""The bench: trays of kits, stations, ledgers, databases, and what goes wrong with each."""
