"""FOTA: pulls the pending job of a kit, verifies and installs its image, reports the result."""
