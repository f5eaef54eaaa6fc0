"""What is called decides: the way of every call inside a trace."""
