"""`python -m gpuwise` is the same as `gpuwise`."""

from gpuwise.cli import main

if __name__ == "__main__":
    main()
