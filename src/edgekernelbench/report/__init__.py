"""One offline page of what runs reached, where they lose and why; and tables for papers."""
