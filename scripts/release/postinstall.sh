#!/bin/sh
set -e
# DynamicUser gives the service its user, so the package creates none.
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
cat <<'TEXT'
Filewright is installed. Start it with:  systemctl enable --now filewright
The settings are in /etc/filewright.env. refserver doctor shows which engines are there.
TEXT
