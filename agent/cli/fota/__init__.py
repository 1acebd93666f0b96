"""`cellagent fota`: the updates that devices are offered and carry out."""
