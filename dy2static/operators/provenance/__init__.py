"""Where values come from and what they are told apart by: guards of what was read, identity, keys."""
