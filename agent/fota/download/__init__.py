"""A download that resumes, is bounded, and only comes from an address that was checked."""
