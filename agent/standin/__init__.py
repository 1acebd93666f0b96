"""The stand-in cloud: both services on loopback, as strict as the real ones.

It imports no client code: a defect that both shared would not be noticed.
"""
