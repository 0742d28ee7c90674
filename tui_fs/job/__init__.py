"""Running a plan in a detached process, and reading what it writes down."""
