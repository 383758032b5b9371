"""For all tests: networks compute on one thread, since pytest runs on all cores already."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
