"""What must not be deleted, and how a confirmed directory is recognised again."""
