"""Published experiments about deleting and files, repeated here."""
