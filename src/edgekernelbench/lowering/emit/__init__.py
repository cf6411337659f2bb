"""Generation of the loop program from a planned kernel."""
