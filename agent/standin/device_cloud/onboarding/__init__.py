"""How devices come to a team: onboarding, claiming, certificates."""
