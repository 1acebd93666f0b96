"""`cellagent modem`: one file for each command."""
