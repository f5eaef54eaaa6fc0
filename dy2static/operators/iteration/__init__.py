"""Everything that goes over items: for, generators, unpacking, iterators and what takes them."""
