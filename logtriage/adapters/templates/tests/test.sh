#!/bin/sh
# The score and its parts; an incident that is still open is closed as timed out.
incident score > "${1:-/logs/verifier}/reward.json"
