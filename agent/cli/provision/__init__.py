"""`cellagent provision`: the options, a file for each command, and the view of a run."""
