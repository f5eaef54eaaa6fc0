"""The runtime: Programs, the tracer that makes them, and the executors that run them."""
