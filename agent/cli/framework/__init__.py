"""What every command shares: common options, session, signals, output."""
