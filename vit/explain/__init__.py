"""What a model looks at: maps, the table of methods, how faithful they are, and pictures of them."""
