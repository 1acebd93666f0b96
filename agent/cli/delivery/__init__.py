"""`cellagent report` and `cellagent outbox`: what is queued and delivered."""
