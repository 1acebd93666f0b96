"""One modem, opened: a command in flight at a time, typed answers, notices as streams."""
