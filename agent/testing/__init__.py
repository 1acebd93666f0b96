"""A pytest plugin: one test, on a virtual kit, a recorded one, or a real one.

One line in conftest.py switches it on: `pytest_plugins = ["agent.testing.plugin"]`.
"""
