"""The page in a browser: statuses, kits, fleets and benches to be seen on it."""
