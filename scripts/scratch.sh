#!/bin/sh
# Prints the directory for temporary files of tests that create many small files: one in memory, if it has
# 4 GiB free, can run programs, and has user attributes, which the S3 server of the tests needs (Linux 6.6).
# Otherwise it prints the usual directory.
memory=/dev/shm
free=$(df -k --output=avail "$memory" 2>/dev/null | tail -n 1)
if [ -w "$memory" ] && [ "${free:-0}" -ge 4194304 ] &&
	printf '6.6\n%s\n' "$(uname -r)" | sort -V -C &&
	! findmnt -n -o OPTIONS "$memory" | grep -qw noexec
then
	echo "$memory"
else
	echo "${TMPDIR:-/tmp}"
fi
