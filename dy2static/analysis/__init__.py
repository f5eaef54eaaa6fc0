"""From tree to facts: scopes, flow, liveness, definite assignment, and what control flow hands over."""
