"""What is to be done to a board, and what must be allowed for it: goal, plan, consents. Pure."""
