"""`cellagent provision`: one file a command."""
