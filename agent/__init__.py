"""cellagent: the agent of a cellular device, on the host to which its kit is connected.

Names such as D5.2 and O4.3 in a docstring are clauses of the contract: see tests/clauses.toml.
"""

__version__ = "0.2.0"
