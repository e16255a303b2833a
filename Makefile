# Each target is a line or two that calls the real tool; all of them set themselves up in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2
