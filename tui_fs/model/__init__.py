"""The vocabulary every room speaks: values and events, without input or output."""
