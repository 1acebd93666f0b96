"""Location: positions of scans, anchors, assistance data, by a made-up radio world."""
