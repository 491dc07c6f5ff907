"""`timetile cache` and `timetile doctor`: the state of this machine."""

from __future__ import annotations

from timetile.runtime.cache.store import Cache
from timetile.runtime.cli.doctor import examine
from timetile.runtime.cli.options import Options
from timetile.runtime.cli.terminal import Log, say
from timetile.runtime.cli.usage import UsageError


def cache(options: Options, log: Log) -> int:
    """`timetile cache`."""
    store = Cache.default()
    if options.action != "path" and store.is_foreign:
        raise UsageError(
            f"{store.directory} is no cache of timetile's and is left alone; set "
            "TIMETILE_CACHE_DIR to another folder"
        )
    match options.action:
        case "path":
            say(str(store.directory))
        case "clear":
            say(f"removed {store.clear()} entries from {store.directory}")
        case "verify":
            damaged = store.damaged()
            for key in damaged:
                say(f"damaged: {store.entry(key)}")
            say(f"{len(store.keys())} entries in {store.directory}, {len(damaged)} damaged")
            if damaged:
                say("a damaged entry is made again when it is needed")
                return 1
    return 0


def doctor(options: Options, log: Log) -> int:
    """`timetile doctor`."""
    for finding in examine():
        say(f"{finding.what:<12} {'found' if finding.found else 'none':<6} {finding.text}")
    return 0
