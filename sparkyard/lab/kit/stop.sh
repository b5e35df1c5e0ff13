#!/bin/sh
exec "$(dirname "$0")/start.sh" stop
