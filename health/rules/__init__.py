"""What readings mean: frozen values in, findings out. Checks and saved samples share them."""
