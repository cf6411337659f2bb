"""Index algebra on core expressions: linear forms, value ranges, simplification, rewriting."""
