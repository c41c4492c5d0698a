"""Whoever could read the old one can read the new one, and nobody else."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def keep_permissions(new: Path, old: os.stat_result) -> None:
    """Give a file or directory the mode of the one that it replaces, and its group where the system allows that.

    Where it does not, the group that the new one has gets what all others have: it may be another one. Only root can
    give it the owner too: then a user's model stays the user's.
    """
    if os.geteuid() == 0 and os.stat(new).st_uid != old.st_uid:
        os.chown(new, old.st_uid, -1)
    mode = stat.S_IMODE(old.st_mode)
    if not give_group(new, old.st_gid):
        mode = mode & ~(stat.S_IRWXG | stat.S_ISGID) | (mode & stat.S_IRWXO) << 3
    os.chmod(new, mode)


def give_group(new: Path, group: int) -> bool:
    """Whether it has this group now."""
    if os.stat(new).st_gid != group:
        try:
            os.chown(new, -1, group)
        except PermissionError:
            return False
    return True
