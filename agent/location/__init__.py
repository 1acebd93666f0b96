"""Scans of cells and Wi-Fi, positions by these scans, and assistance data for GNSS."""
