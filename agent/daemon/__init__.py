"""The agent that runs for months: it wires the parts, one supervised task a concern."""
