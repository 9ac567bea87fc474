"""What a run on a VM has written since the last look comes here, whole or not at all."""

import os
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from rlvr import records
from rlvr.colab import bundle, client, remote
from rlvr.colab.client import Gone, Unreachable
from rlvr.cycles import Run, RunFiles
from rlvr.errors import RlvrError
from rlvr.records import ColabSession

PART_BYTES = int(float(os.environ.get("RLVR_COLAB_PART_MIB", "32")) * 2**20)
"""Larger archives travel in parts: each travels as one request, and takes 2.3 times its size in memory."""


PACK = """
def main():
    import os, runpy
    if not os.path.exists({base!r} + "/state.json"):
        return None
    remote = runpy.run_path({base!r} + "/code/rlvr/colab/remote.py")
    return remote["pack"]({base!r}, *{arguments!r})
"""


def ask(session: ColabSession, code: str, auth: str) -> Any:
    """Run code on the VM of a run; what it returns.

    Raises:
        Gone: when Colab does not know the VM any more.
        Unreachable: for all else, which may be better the next time.
    """
    try:
        return client.execute(session.session, code, auth)
    except RlvrError as error:
        raise is_gone(session, auth, error) from None


def is_gone(session: ColabSession, auth: str, error: RlvrError) -> RlvrError:
    """What an error of a VM means: a kernel that does not answer may be a VM that was taken back.

    Only the list of sessions tells, if Colab can be asked for it; a VM that the client has forgotten is of no use.
    """
    try:
        found = client.find(session.session, session.endpoint, auth)
    except RlvrError as second:
        return Unreachable(str(second))
    if found is None or found.name != session.session:
        return Gone(str(error))
    return error if isinstance(error, Unreachable) else Unreachable(str(error))


def mirror(run: Run, session: ColabSession, auth: str, checkpoints: bool = True) -> dict[str, Any]:
    """Fetch what has grown on the VM since the last time; the state of the supervisor there.

    Asking for it also keeps the VM's kernel busy, without which Colab takes an idle VM back.

    Raises:
        Gone: when the VM is lost.
        Unreachable: when it does not answer, or what came is broken.
    """
    files = run.files
    log_bytes = records.read(files.colab, ColabSession).log_bytes
    while True:
        have, have_checkpoints = bundle.what_we_have(files)
        arguments = (
            have,
            log_bytes,
            have_checkpoints if checkpoints else None,
            not (files.adapter / "adapter_config.json").exists(),
            PART_BYTES,
        )
        answer = ask(session, PACK.format(base=session.base, arguments=arguments), auth)
        if answer is None:
            raise Gone("the VM is there, but empty")
        manifest = answer["manifest"]
        if manifest is not None:
            try:
                fetch(session, manifest, files, answer["kept_checkpoints"], auth)
            except RlvrError as error:
                raise is_gone(session, auth, error) from None
            log_bytes = manifest["log_bytes"]
            records.write(files.colab, msgspec.structs.replace(session, log_bytes=log_bytes))
        bundle.keep_provenance(files, answer["about"], parent_text(files))
        # What an ended one has written since is asked for until there is nothing more.
        if manifest is None or answer["state"]["phase"] != "ended":
            return answer["state"]


def fetch(
    session: ColabSession, manifest: dict[str, Any], files: RunFiles, kept_checkpoints: list[str], auth: str
) -> None:
    """Download a piece in its parts and add it to the run.

    Raises:
        RlvrError: when it did not come whole; the files are as they were.
    """
    with tempfile.TemporaryDirectory(dir=files.folder, prefix=bundle.PIECE_PREFIX) as folder:
        piece = Path(folder) / remote.PIECE_FILE
        parts = [Path(folder) / f"{remote.PIECE_FILE}.{number:03d}" for number in range(manifest["parts"])]
        for part in parts:
            where = f"content/{Path(session.base).name}/{part.name}"
            if not client.download(session.session, where, part, auth):
                raise RlvrError("what has grown on the VM could not be fetched: it is tried again")
        bundle.join(parts, piece, manifest["sha256"])
        bundle.apply_piece(piece, manifest, files, kept_checkpoints)


def parent_text(files: RunFiles) -> str:
    """The adapter of a warm start as the trainer here would record it."""
    if not files.parent.is_symlink():
        return ""
    return os.path.relpath(files.parent.resolve(), files.folder.resolve().parents[2])
