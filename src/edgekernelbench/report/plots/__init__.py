"""Plots as SVG whose colours, fonts and links are the page's own."""
