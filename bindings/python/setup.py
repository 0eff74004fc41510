"""The wheel has a library for one platform, and suits every Python 3 on it."""

import re
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel

LIBRARY = Path(__file__).with_name("gestalt") / "libgestalt.so.3"


class PlatformDistribution(Distribution):
    def has_ext_modules(self):
        return True


def manylinux(platform):
    """The platform as PEP 600 names it: with the newest version of glibc of which the library names a symbol."""
    versions = re.findall(rb"GLIBC_(\d+)\.(\d+)", LIBRARY.read_bytes())
    if not platform.startswith("linux_") or not versions:
        return platform
    major, minor = max((int(major), int(minor)) for major, minor in versions)
    return platform.replace("linux", f"manylinux_{major}_{minor}", 1)


class AnyPython(bdist_wheel):
    def get_tag(self):
        return "py3", "none", manylinux(super().get_tag()[2])


setup(distclass=PlatformDistribution, cmdclass={"bdist_wheel": AnyPython})
