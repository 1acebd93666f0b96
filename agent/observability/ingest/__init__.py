"""What devices push: chunks, events, core dumps and files, and who they come from."""
