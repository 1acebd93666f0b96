"""What devices push: chunks, events, core dumps, archives."""
