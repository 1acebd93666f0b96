"""The typed commands of an nRF93M1 that an nRF91 does not have."""
