"""Scans of cells and Wi-Fi, the positions made of them, and assistance data for GNSS."""
