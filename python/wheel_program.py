"""Puts the compiled program into a wheel, which then is one platform's.

PLACER_WHEEL_PROGRAM is the program's file and PLACER_WHEEL_PLATFORM the platform's tag
(.ci/wheels sets both). Without them the wheel has the Python packages alone.
"""

import os

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ProgramHook(BuildHookInterface):
    """What hatchling calls before it builds a wheel."""

    def initialize(self, version, build_data):
        program = os.environ.get("PLACER_WHEEL_PROGRAM")
        if not program:
            return
        platform = os.environ["PLACER_WHEEL_PLATFORM"]
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        build_data["shared_scripts"] = {program: "placer.exe" if platform.startswith("win") else "placer"}
