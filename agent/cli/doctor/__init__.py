"""`cellagent doctor`."""
