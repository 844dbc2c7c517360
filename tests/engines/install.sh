#!/bin/sh
# A JRE for PySpark, PostgreSQL and MariaDB from Debian's packages, where they are missing and may be installed.
set -eu
packages=""
command -v java >/dev/null || packages="default-jre-headless"
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || packages="$packages postgresql"
PATH="$PATH:/usr/sbin" command -v mariadbd >/dev/null || packages="$packages mariadb-server"
[ -z "$packages" ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages
else
  echo "make test-engines needs a Java runtime, PostgreSQL and MariaDB: apt-get install $packages" >&2
  exit 1
fi
