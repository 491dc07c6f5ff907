"""When planes of a queue arrive, how long they are kept, and how threads wait for them."""
