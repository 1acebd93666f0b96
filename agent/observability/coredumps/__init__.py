"""Core dumps of the device SDK and of Linux, and the ELF files that explain them."""
