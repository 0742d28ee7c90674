"""The texts of the project: what they are, and words that must not occur in them."""
