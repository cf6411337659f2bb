"""Runs as files for other programs and for papers."""
