"""`cellagent device`: devices at the device cloud."""
