"""The typed commands of the modem, one file for each family of the manual."""
