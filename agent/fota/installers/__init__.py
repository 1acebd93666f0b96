"""How an image gets onto a kit: one seam, several installers."""
