"""Files in parts, and what becomes of them once they are committed."""
