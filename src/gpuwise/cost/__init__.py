"""What a run costs: billing (one run's bill, line by line) and annuity (an owned machine's hour)."""
