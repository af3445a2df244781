#!/bin/sh
# Installs the Python packages of the files given into the environment VENV.
#   install-python.sh VENV FILE...
# uv does it in a quarter of pip's time; where uv cannot be had, or finds no packages (it does not read pip's settings), pip does.
set -eu
venv=$1
shift
pip="$venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile"
files=""
for file in "$@"; do files="$files -r $file"; done
[ -x "$venv/bin/uv" ] || $pip uv==0.13.9 2>/dev/null || true
{ [ -x "$venv/bin/uv" ] && "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" $files 2>/dev/null; } || $pip $files
