"""Files of this program on the host: where they are, and who may read and change them."""
