"""Keys, certificates, CAs and tokens, made anew for each run."""
