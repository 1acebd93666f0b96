"""The commands of Nordic's Serial Modem (#X...), which it answers itself."""
