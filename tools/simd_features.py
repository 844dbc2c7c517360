"""Features of this processor that NPY_DISABLE_CPU_FEATURES can turn off, separated by spaces.

Those that NumPy was compiled to require (its baseline) cannot be turned off.
"""

from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

if __name__ == "__main__":
    print(*(name for name in __cpu_dispatch__ if __cpu_features__[name]))
