"""The kernel of a page: as ipykernel starts it, but only while the folder of its run is there.

ipykernel makes the folder of its connection file where it is missing. A kernel that outlives its
killed run while it starts would so bring back what the next run has removed, and nobody would know
whose folder that is.
"""

import os
import sys

from ipykernel.kernelapp import IPKernelApp


class Kernel(IPKernelApp):
    """A kernel that ends at once when nobody is left to talk to."""

    def init_connection_file(self):
        if not os.path.exists(self.abs_connection_file):
            self.exit(1)
        super().init_connection_file()


if __name__ == "__main__":
    sys.path.pop(0)  # a page does not look for modules where this file lies
    Kernel.launch_instance()
