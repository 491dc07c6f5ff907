"""The disk cache: results of compiling are kept for the next process.

No library does all of this work. diskcache keeps an index in SQLite, unsafe on shared file systems,
and pickles, running code possibly written by somebody else. joblib's store pickles, too, and
neither asks for the owner of an entry. The rules are few: a folder of the cache's own (`folder`), a
file for each entry (`entry`), keys of content (`keys`).
"""
