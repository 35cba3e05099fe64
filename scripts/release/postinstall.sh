#!/bin/sh
set -e
# DynamicUser creates the user of the service, so the package creates no user.
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
cat <<'TEXT'
Filewright is installed. Start it with:  systemctl enable --now filewright
The settings are in /etc/filewright.env. refserver doctor shows which engines are there.
TEXT
