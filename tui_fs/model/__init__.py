"""Values and events shared by all packages, without input or output."""
