"""`cellagent provision`: the options, a file for each command, and the progress of a run."""
