"""The operators of the IR: what each name means, and the rules attached to it."""
