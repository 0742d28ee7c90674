"""What a deletion will cost, predicted from a survey."""
