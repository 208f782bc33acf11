#!/bin/sh
set -eu
cd /Users/mei/Cloud\ Drive/workbuddy_home/sessions/20240605_api_refactor/artifacts/orders-api
exec '/Users/mei/Cloud Drive/workbuddy_home/.venv/bin/python' -m pytest -q "$@"
