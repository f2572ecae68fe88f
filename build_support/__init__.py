"""What building the package needs beyond setuptools: a C compiler, and the hooks that ask for one."""
