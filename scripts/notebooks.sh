#!/usr/bin/env bash
# Run what users run on one version of Python, with our packages installed from wheels: all notebooks, every command, the
# commands of the documents. `make test-notebooks` does so for each version.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$1
venv=.venv-$version
for python in "python$version" "$HOME/.pyenv/versions/$version".*/bin/python; do
  "$python" -c "" 2>/dev/null && break
done
test -x "$venv/bin/python" || "$python" -m venv "$venv"
"$venv/bin/python" -c "import sys; print('Python', sys.version); assert sys.version.startswith('$version.')"

install=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile)
"${install[@]}" "pip>=26"
"${install[@]}" --constraint constraints.txt --requirement requirements.txt pytest pytest-xdist hypothesis requests psutil \
  inspect_ai verifiers
rm -rf build/wheels ./*/build
"$venv/bin/python" -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir build/wheels ./logtriage ./triagelab ./logreader 2>/dev/null
rm -rf ./*/build
"${install[@]}" --no-deps --force-reinstall build/wheels/*.whl

# Nothing may be imported from the checkout: not by way of the working directory, nor of PYTHONPATH.
cd notebooks
unset PYTHONPATH
export PYTHONSAFEPATH=1 OMP_NUM_THREADS=1
PATH="$PWD/../$venv/bin:$PATH" "../$venv/bin/python" -m pytest -q -n 2 --dist loadfile --durations 12 ../tests/installed ../tests/test_docs.py
