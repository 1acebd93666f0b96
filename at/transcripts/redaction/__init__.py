"""What a recording must not show: secrets, and whom or what it names."""
