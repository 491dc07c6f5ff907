"""The host function of a program: the operations around time loops, and their memory."""
