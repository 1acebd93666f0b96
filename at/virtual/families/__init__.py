"""What the virtual modem answers, one file a family of the AT manual."""
