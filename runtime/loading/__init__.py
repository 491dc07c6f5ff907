"""Programs as text and modules, with the dialects, passes and spellings of other packages.

`load` and `load_text` are the way in for frontends.
"""

from timetile.runtime.loading.modules import load as load
from timetile.runtime.loading.modules import load_text as load_text
