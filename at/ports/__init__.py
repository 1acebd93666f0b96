"""Serial ports: the kit that each belongs to, who holds it, and locks that name their holder."""
