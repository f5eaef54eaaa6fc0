"""What is done to a value: attributes, items, operators, comparisons, text, modules."""
