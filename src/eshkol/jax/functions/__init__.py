"""Functions of JAX's that are more than a row of the op table under another name; the tables beside this offer them."""
