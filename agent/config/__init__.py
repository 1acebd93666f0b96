"""Configuration: profiles in TOML, the environment, flags; and where each value came from."""
