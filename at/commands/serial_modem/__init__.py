"""The typed commands of Nordic's Serial Modem (#X...), which answers them itself."""
