"""What arrives on the line, told apart; what gets a modem in step again. Pure."""
