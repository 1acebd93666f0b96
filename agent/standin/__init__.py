"""The stand-in cloud: both services on loopback, as strict as the real ones.

It imports no client code: a shared mistake would hide itself.
"""
