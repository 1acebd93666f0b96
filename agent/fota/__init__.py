"""FOTA: the pending job of the kit is pulled, its image proven, installed, and reported truly."""
