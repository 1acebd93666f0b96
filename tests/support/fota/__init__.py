"""Updates: jobs and their kits, download hosts, signed images, boot loaders, kills."""
