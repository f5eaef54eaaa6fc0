"""What all operators of converted code use: does a value stage, who is converted, the cells of variables."""
