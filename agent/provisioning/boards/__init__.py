"""A board: what it is and holds, how it is found and read, and the limits it is judged by."""
