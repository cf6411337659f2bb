"""What can be said of a kernel without running it: loop nest, traffic, bill, roofline."""
