"""How the tests themselves run: what they start, what they cost, their clocks, mutations."""
