"""Integer dot products: which instruction takes which bytes, and the program made to fit it."""
