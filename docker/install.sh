#!/bin/sh
# Install or upgrade Cloneyard on this host, from the files of `make dist` beside this
# script: the wheel, requirements.lock and the units of systemd. A second run changes
# nothing. Settings, data and the user are never overwritten or removed.
set -eu
umask 022

usage() {
  cat <<'END'
sudo sh install.sh --role web|worker|host-worker|lab [--role …] [--site SITE] [--allow …]
sudo sh install.sh --uninstall [--prefix DIR]

  --role ROLE      what runs here: web, worker, host-worker; may be given again
                   (lab: for trials, the lab's ONTAP and Perforce server)
  --site SITE      for host-worker: the site whose namespace this host mounts
  --allow WHAT     for host-worker: commands (it runs commands of templates) or mounts
                   (it mounts each volume itself); may be given again
  --prefix DIR     where the program goes (/opt/cloneyard)
  --python PROGRAM Python 3.11 or newer (python3)
  --find-links DIR take packages from this directory alone, without an index
  --uninstall      remove program, units and command; keep settings, data and user
END
}
fail() { echo "install.sh: $1" >&2; exit 1; }
wrong() { echo "install.sh: $1 (--help says more)" >&2; exit 2; }
say() { echo "$1"; changed=yes; }

prefix=/opt/cloneyard python=python3 roles='' site='' allowed='' links='' uninstall=no
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --uninstall) uninstall=yes; shift; continue ;;
    --role | --site | --allow | --prefix | --python | --find-links)
      [ $# -ge 2 ] && [ -n "$2" ] || wrong "$1 needs a value" ;;
    *) wrong "what is $1?" ;;
  esac
  case $1 in
    --role)
      case $2 in
        web | worker | host-worker | lab) roles="$roles $2" ;;
        *) wrong "there is no role $2: web, worker, host-worker or lab" ;;
      esac ;;
    --site) site=$2 ;;
    --allow)
      case $2 in
        commands | mounts) allowed="$allowed $2" ;;
        *) wrong "there is nothing to allow that is called $2: commands or mounts" ;;
      esac ;;
    --prefix) prefix=${2%/} ;;
    --python) python=$2 ;;
    --find-links) links=$2 ;;
  esac
  shift 2
done

here=$(cd "$(dirname "$0")" && pwd)
settings=/etc/cloneyard/environment
data=/var/lib/cloneyard
units=/etc/systemd/system
drop_ins=$units/cloneyard-host-worker@.service.d
command=/usr/local/bin/cloneyard-server
mark=$prefix/.installed-by-cloneyard
changed=no
runs_systemd() { [ -d /run/systemd/system ] && command -v systemctl >/dev/null; }

case $prefix in
  /*[!/A-Za-z0-9._-]* | /) wrong "--prefix $prefix has characters that units cannot have" ;;
  /?*) ;;
  *) wrong "--prefix has to begin with /" ;;
esac
[ "$(id -u)" = 0 ] || fail "only root can install"

if [ "$uninstall" = yes ]; then
  [ -z "$roles$site$allowed" ] || wrong "--uninstall takes no role"
  [ -e "$mark" ] || fail "$prefix was not made by this script"
  for unit in "$units"/cloneyard-web.service "$units"/cloneyard-worker.service \
    "$units"/cloneyard-lab.service "$units"/cloneyard-host-worker@.service; do
    [ -e "$unit" ] || continue
    name=$(basename "$unit" .service)
    case $name in *@) name="$name*" ;; esac
    if runs_systemd; then systemctl disable --now "$name" || true; fi
    rm "$unit"
  done
  rm -f "$drop_ins/commands.conf" "$drop_ins/mounts.conf"
  rmdir "$drop_ins" 2>/dev/null || true
  if runs_systemd; then systemctl daemon-reload; fi
  rm -rf "$prefix"
  rm -f "$command"
  echo "Cloneyard is removed. $settings, $data and the user cloneyard are kept."
  exit 0
fi

[ -n "$roles" ] || wrong "name a --role"
case " $roles " in
  *" host-worker "*)
    [ -n "$site" ] || wrong "host-worker needs a --site"
    case $site in
      [!a-z]* | *[!a-z0-9-]*) wrong "--site $site is not the name of a site" ;;
    esac ;;
  *)
    [ -z "$site" ] || wrong "--site is for the role host-worker"
    [ -z "$allowed" ] || wrong "--allow is for the role host-worker" ;;
esac
command -v "$python" >/dev/null || fail "there is no $python"
"$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
  fail "$python is not Python 3.11 or newer with venv (on Debian: apt-get install python3-venv)"
set -- "$here"/cloneyard-*.whl
[ $# = 1 ] && [ -f "$1" ] || fail "$here has to have one wheel of cloneyard: make dist"
wheel=$1
lock=$here/requirements.lock
[ -f "$lock" ] || fail "there is no $lock"
for role in $roles; do
  case $role in host-worker) role=host-worker@ ;; esac
  [ -f "$here/cloneyard-$role.service" ] || fail "there is no $here/cloneyard-$role.service"
done
for name in $allowed; do
  [ -f "$here/cloneyard-host-worker-$name.conf" ] || fail "there is no $here/cloneyard-host-worker-$name.conf"
done
[ ! -e "$prefix" ] || [ -e "$mark" ] || [ -z "$(ls -A "$prefix")" ] ||
  fail "$prefix has something else in it"

# --- the user, and what it may write

getent passwd cloneyard >/dev/null || {
  useradd --system --user-group --home-dir "$data" --shell /usr/sbin/nologin cloneyard
  say "Made the user cloneyard."
}
[ -d "$data" ] || { install -d -o cloneyard -g cloneyard -m 0750 "$data"; say "Made $data."; }
# Host workers are root, and web servers read what they write here.
[ -d "$data/logs" ] || { install -d -o cloneyard -g cloneyard -m 2770 "$data/logs"; say "Made $data/logs."; }
[ -d /etc/cloneyard ] || { install -d -g cloneyard -m 0750 /etc/cloneyard; say "Made /etc/cloneyard."; }

# --- the program

# Each release has a directory of its own, and `bin` leads to one: nothing changes until
# the new one is whole, and what runs keeps its files. The one before it is kept.
wanted=$(cat "$wheel" "$lock" | sha256sum | cut -c1-16)
release=$prefix/releases/$wanted
before=$(readlink "$prefix/bin" || true)
if [ "$before" != "releases/$wanted/bin" ]; then
  mkdir -p "$prefix/releases"
  : >"$mark"
  if [ ! -e "$release/whole" ]; then
    rm -rf "$release"
    "$python" -m venv "$release"
    index=${links:+--no-index --find-links $links}
    pip="$release/bin/pip --quiet --disable-pip-version-check install $index"
    $pip --require-hashes -r "$lock" || fail "the packages of requirements.lock could not be installed; nothing is changed, run this again"
    $pip --no-deps "$wheel" || fail "the wheel could not be installed; nothing is changed, run this again"
    : >"$release/whole"
  fi
  ln -sfn "releases/$wanted/bin" "$prefix/bin.new"
  mv -T "$prefix/bin.new" "$prefix/bin"
  for other in "$prefix"/releases/*; do
    case $other/bin in "$release/bin" | "$prefix/$before") ;; *) rm -rf "$other" ;; esac
  done
  say "Installed $(basename "$wheel") in $prefix."
fi

# --- settings

if [ ! -e "$settings" ]; then
  key=$("$release/bin/python" -c 'import secrets; print(secrets.token_urlsafe(50))')
  new=$(umask 077; mktemp /etc/cloneyard/.environment.XXXXXX)
  cat >"$new" <<END
# Settings, one NAME=value a line: docs/configuration.md. Read by the units of systemd
# and by cloneyard-server. All hosts have the same SECRET_KEY and DATABASE_URL.
SECRET_KEY=$key
VAR_DIR=$data
# DATABASE_URL=postgres://cloneyard:PASSWORD@HOST/cloneyard
ALLOWED_HOSTS=localhost,127.0.0.1
PUBLIC_URL=http://127.0.0.1:8000
END
  mv "$new" "$settings"
  say "Made $settings with a SECRET_KEY of its own."
fi

new=$(mktemp)
trap 'rm -f "$new"' EXIT
cat >"$new" <<END
#!/bin/sh
# Made by install.sh: a command with the settings of the services, as their user.
[ "\$(id -u)" = 0 ] || { echo "cloneyard-server: only root can read the settings." >&2; exit 1; }
while IFS= read -r line || [ -n "\$line" ]; do
  case \$line in
    [A-Za-z_]*=*) ;;
    *) continue ;;
  esac
  name=\${line%%=*} value=\${line#*=}
  case \$value in
    \"*\") value=\${value#\"} value=\${value%\"} ;;
    \'*\') value=\${value#\'} value=\${value%\'} ;;
  esac
  export "\$name=\$value"
done <$settings
export HOME=$data
exec setpriv --reuid cloneyard --regid cloneyard --init-groups -- $prefix/bin/cloneyard-server "\$@"
END
put() { # what, where, mode
  cmp -s "$1" "$2" || { install -m "$3" "$1" "$2"; say "Wrote $2."; }
}
put "$new" "$command" 0755

# --- units

start=''
for role in $roles; do
  case $role in
    host-worker) unit=host-worker@ start="$start cloneyard-host-worker@$site" ;;
    *) unit=$role start="$start cloneyard-$role" ;;
  esac
  sed "s|/opt/cloneyard/|$prefix/|" "$here/cloneyard-$unit.service" >"$new"
  install -d "$units"
  put "$new" "$units/cloneyard-$unit.service" 0644
done
for name in commands mounts; do
  case " $allowed " in
    *" $name "*) install -d "$drop_ins" ;;
    *) [ -e "$drop_ins/$name.conf" ] || continue ;; # allowed before
  esac
  put "$here/cloneyard-host-worker-$name.conf" "$drop_ins/$name.conf" 0644
done
if [ "$changed" = no ]; then
  echo "Nothing to do: everything is as it should be."
  exit 0
fi
if runs_systemd; then systemctl daemon-reload; fi
echo "Next: set DATABASE_URL in $settings, then"
echo "  cloneyard-server migrate"
echo "  systemctl enable --now$start"
