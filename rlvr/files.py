"""Writing a whole file so that a reader meets the old one or the new one, never half of it."""

import contextlib
import os
from pathlib import Path


def replace_file(path: Path, content: bytes) -> None:
    """Put `content` in place of what a file held.

    Raises:
        OSError: when it cannot be written; the old file is there as it was.
    """
    temporary = path.with_name(path.name + ".tmp")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
