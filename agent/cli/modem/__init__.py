"""`cellagent modem`: one file a command."""
