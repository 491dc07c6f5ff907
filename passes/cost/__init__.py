"""What a kernel costs: the model that `choose-schedule` compares candidates with."""
