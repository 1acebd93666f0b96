"""What is secret in commands and answers, and how it is hidden in any text. Pure."""
