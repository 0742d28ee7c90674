"""A survey in a process of its own, so that counting never delays a key press.

Run as ``python -m tui_fs.survey.worker PATH_IN_BASE64``: writes pickled `Survey` values (or
one `TuiFsError`) to standard output, the last one complete. The reader is always the parent
process of the same installation.
"""

import os
import pickle
import sys

from tui_fs.model.errors import BadInput
from tui_fs.model.paths import displayable, from_base64
from tui_fs.survey.scandir import ScandirSurvey


def main() -> None:
    """Survey the path of the first argument."""
    path = from_base64(sys.argv[1])
    output = sys.stdout.buffer
    try:
        for survey in ScandirSurvey([path]).run():
            pickle.dump(survey, output)
            output.flush()
    except BrokenPipeError:
        os._exit(0)  # the reader has closed: nobody wants the rest
    except OSError as error:
        sentence = f"{displayable(path)} cannot be read: {os.strerror(error.errno or 0)}."
        pickle.dump(BadInput(sentence), output)


if __name__ == "__main__":
    main()
