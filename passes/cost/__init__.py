"""The cost model, with which `choose-schedule` compares candidates."""
