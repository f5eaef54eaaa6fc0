"""Programs for places without Python: a folder a target. ``c`` writes libraries in C."""
