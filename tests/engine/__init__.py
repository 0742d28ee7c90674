"""The native engine by itself: its real binary on real file systems."""
