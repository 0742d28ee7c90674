"""Terminal widgets that draw rows, bars and questions and know nothing about deleting."""
