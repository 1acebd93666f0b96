"""Where a virtual modem is served: pseudo-terminals, TCP, and what runs beside it."""
