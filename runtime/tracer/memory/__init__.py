"""Tensors as memory and views of it: storages, aliases under path conditions, the caller's tensors."""
