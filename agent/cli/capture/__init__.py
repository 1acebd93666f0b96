"""`cellagent capture`: chunks, messages and core dumps read from what a kit printed."""
