"""The commands that the virtual modem answers, one file for each family of the AT manual."""
