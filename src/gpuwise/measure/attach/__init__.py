"""Sees the steps and stages of a person's own, unmodified program from inside its process.

`site/sitecustomize.py` is put first on PYTHONPATH and loads this package and gpuwise.meter by their paths, so gpuwise
need not be installed beside the program. Nothing here may change what the program computes, prints or saves: every
failure is caught at one border (`border.Border`), noted as an event, and the program goes on.

    sitecustomize → imports (what runs once torch, PIL … are imported) → loop, loader (hooks) → recorder (steps) → meter
"""
