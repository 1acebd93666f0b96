"""The modem's commands, typed both ways: one file a family of the manual."""
