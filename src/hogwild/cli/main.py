"""The `hogwild` command: finds the command that was called, and turns what goes wrong into a line and an exit code.

Exit codes: 0 done, 1 failed, 2 wrong usage or input, 130 interrupted.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback

from hogwild.cli.calling import calling
from hogwild.cli.commands import COMMANDS, Entry
from hogwild.cli.imports import leave_out
from hogwild.cli.interrupt import ignore_signals, no_interrupt_lost
from hogwild.cli.streams import standard_streams, stay_usable
from hogwild.errors import ConfigError, HogwildError, brief, shorten, speaking_flags
from hogwild.messages import Stream, output_failed, remedy, say

DONE, FAILED, WRONG_USE, INTERRUPTED = 0, 1, 2, 130

_HELP = """\
usage: hogwild COMMAND [OPTIONS]

Train models with many workers that share one set of weights without locks.

Start here:
  hogwild demo
  hogwild make-dataset sparse --rows 100000 --output train.svm
  hogwild make-dataset sparse --rows 20000 --part 1 --output test.svm
  hogwild train classifier train.svm --valid test.svm --output model
  hogwild evaluate model test.svm
  hogwild predict model test.svm
  hogwild train tagger chunks.txt --output tagger
  hogwild train word2vec text.txt.gz --output vectors
  hogwild neighbors vectors king

{commands}

Every command has its own help: hogwild train classifier --help
Exit codes: 0 done, 1 failed, 2 wrong usage or input, 130 interrupted."""


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    if argv is None:  # the process is ours, and pyarrow would import it for its first array, in a second
        leave_out("pandas")
    with standard_streams() as output, speaking_flags():
        code = _run(sys.argv[1:] if argv is None else argv, output)
    if argv is None and code == INTERRUPTED:
        ignore_signals()  # the process is about to end, with this code
    return code


def _run(argv: list[str], output: Stream) -> int:
    debug = "--debug" in argv
    try:
        with no_interrupt_lost():
            stay_usable()
            code = _dispatch(argv)
            output.flush()
        if isinstance(output.problem, OSError) and output.problem.errno != errno.EPIPE:
            _report(output_failed(output.problem), FAILED, debug)
        return code if output.problem is None else code or FAILED
    except HogwildError as error:
        return _report(str(error), error.exit_code, debug)
    except KeyboardInterrupt:
        return _report("interrupted.", INTERRUPTED, debug, kind="")
    except BrokenPipeError:  # the reader of our output has gone
        return FAILED
    except MemoryError:
        return _report("there is not enough memory for this; close other programs or use less data.", FAILED, debug)
    except OSError as error:
        return _report(_said(error), FAILED, debug)
    except Exception as error:
        text = shorten(f"{type(error).__name__}: {error}")
        return _report(f"unexpected {text} (run with --debug for the traceback)", FAILED, debug)


def _said(error: OSError) -> str:
    """An error of the system that nobody expected where it came up."""
    what = error.strerror or str(error) or type(error).__name__
    file = f": {os.fsdecode(error.filename)}" if isinstance(error.filename, str | bytes) else ""
    otherwise = "check the permissions" if isinstance(error, PermissionError) else "run with --debug to see where"
    return f"{what}{file}; {remedy(error, otherwise)}."


def _report(message: str, code: int, debug: bool, kind: str = "error: ") -> int:
    if debug:
        for line in traceback.format_exc().splitlines():
            say(line)
    say(f"hogwild: {kind}{message}")
    return code


def _dispatch(argv: list[str]) -> int:
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(_HELP.format(commands=_listing(COMMANDS)))
        return DONE if argv else WRONG_USE
    if argv[0] == "--version":
        from hogwild import __version__

        print(f"hogwild {__version__}")
        return DONE
    entry = _find(argv)
    if entry is None:
        inner = [entry for entry in COMMANDS if entry.words[0] == argv[0]]
        print(f"usage: hogwild {argv[0]} {'|'.join(entry.words[1] for entry in inner)} [OPTIONS]\n\n{_listing(inner)}")
        return DONE if len(argv) > 1 else WRONG_USE
    from hogwild.cli.flags import HelpShown, parse  # here: it needs all options, and the help above none

    module = entry.load()
    try:
        options = parse(module.Options, module.PAGE, argv[len(entry.words) :])
    except HelpShown:
        return DONE
    with calling(argv):
        return int(module.run(options))


def _find(argv: list[str]) -> Entry | None:
    """The command that was called; None where only the help of a group of commands makes sense."""
    from hogwild.config.options import nearest

    group = [entry for entry in COMMANDS if entry.words[0] == argv[0]]
    if not group:
        names = sorted({entry.words[0] for entry in COMMANDS})
        kind = "flag" if argv[0].startswith("-") else "command"
        raise ConfigError(f"unknown {kind} {shorten(argv[0], 80)}{nearest(argv[0], names)}. See: hogwild --help")
    if len(group[0].words) == 1:
        return group[0]
    if len(argv) < 2 or argv[1] in ("-h", "--help"):
        return None
    found = next((entry for entry in group if entry.words[1] == argv[1]), None)
    if found is None:
        kinds = [entry.words[1] for entry in group]
        raise ConfigError(
            f"hogwild {argv[0]} knows no {brief(argv[1])}{nearest(argv[1], kinds)}; there is: {', '.join(kinds)}."
        )
    return found


def _listing(entries: tuple[Entry, ...] | list[Entry]) -> str:
    width = max(len(entry.name) for entry in entries)
    return "Commands:\n" + "\n".join(f"  {entry.name:{width}}  {entry.summary}" for entry in entries)


if __name__ == "__main__":
    sys.exit(main())
