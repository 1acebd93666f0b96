"""What devices and their consoles give away: chunks, core dumps, ELF files, archives."""
