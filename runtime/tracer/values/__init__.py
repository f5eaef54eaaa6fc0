"""Python values as structures that Variables carry: containers, lists that grow, one of several, identity."""
