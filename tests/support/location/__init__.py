"""Where a kit is: a kit that moves, scans, and the services of a desktop that scan."""
