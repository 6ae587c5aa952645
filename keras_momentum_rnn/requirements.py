"""What a part of the library needs beside Keras."""

import importlib.util


def check(part, extra, modules):
    """Raise an `ImportError` that says what to install, if a module is missing.

    Args:
        part: what needs the modules, for the message.
        extra: the extra of this distribution that has them all.
        modules: dict from modules to the distributions that have them.
    """
    missing = [name for module, name in modules.items() if not is_installed(module)]
    if missing:
        raise ImportError(
            f"{part} needs {', '.join(missing)} (extra `{extra}`). Install: "
            f"pip install {' '.join(missing)}"
        )


def is_installed(module):
    return importlib.util.find_spec(module) is not None
