#!/bin/sh
# A JRE for PySpark and PostgreSQL from Debian's packages, where they are missing and may be installed.
set -eu
packages=""
command -v java >/dev/null || packages="default-jre-headless"
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || packages="$packages postgresql"
[ -z "$packages" ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages
else
  echo "make test-engines needs a Java runtime and PostgreSQL: apt-get install $packages" >&2
  exit 1
fi
