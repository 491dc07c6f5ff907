"""The disk cache: what is made of a program is kept for the next process.

No library does all of this: diskcache keeps its index in SQLite, which is not safe on file systems that machines share,
and pickles, which runs what somebody else may have written; joblib's store pickles, too, and neither asks whose an entry
is. The rules are few: a folder of its own (`folder`), a file an entry (`entry`), keys of content (`keys`).
"""
