#!/usr/bin/env bash
# Proves that the README's commands work for a newcomer: on a minimal Debian (or Ubuntu, where that is what runs this), in which there is
# nothing but what the README says that its reader has, and with an empty home.
#
# It never leaves a mount on this machine, and never writes to anything of it but its own folder and its log. It needs root, and
# mmdebstrap or debootstrap.
#
#   test-fresh.sh [--keep] [--working-tree] [--commands COMMAND]... [DIR]
#
#   --commands COMMAND   run this in place of `make demo` and `make test`; may be given several times
#   --working-tree       take what is not committed as well
#   --keep               leave DIR as it is at the end; another call with the same DIR goes on in it
#   DIR                  where the system is made: a new folder, with some 40 GB free; /var/tmp/test-fresh.* if not given
# shellcheck disable=SC2317 # some functions are called by traps, or by name on the new machine
set -euo pipefail

# What the README's reader has, beside Rust and Go.
readonly PACKAGES=git,make,ca-certificates
# Home of who works on the new machine.
readonly NEW_HOME=/root
readonly CHECKOUT=$NEW_HOME/cluster-operator

self=$(readlink -f "${BASH_SOURCE[0]}")
source=$(cd "$(dirname "$self")/../.." && pwd)
readonly self source

fail() {
  echo "test-fresh: $*" >&2
  exit 1
}

has() { command -v "$1" >/dev/null; }

# ---- on this machine ------------------------------------------------------------------------------------------------------------------

child=''

# Runs a program in namespaces that are gone, with all their mounts and processes, when it ends or is killed.
isolated() {
  unshare --mount --pid --ipc --uts --fork --kill-child=KILL --mount-proc --propagation private -- "$@" </dev/null &
  child=$!
  local status=0
  wait "$child" || status=$?
  child=''
  return "$status"
}

# The same with its output in a file. A redirected function would hold this script's own output open, for which cleanup() waits.
# shellcheck disable=SC2016 # for the inner shell
logged() { isolated "$BASH" -c 'exec "${@:2}" >"$1" 2>&1' logged "$@"; }

cleanup() {
  trap '' INT TERM HUP
  if [[ -n $child ]]; then
    kill -KILL "$child" 2>/dev/null || true
    wait "$child" 2>/dev/null || true
  fi
  if ((keep)); then
    echo "kept: $directory"
  else
    echo "removing $directory"
    # No mount is visible here, and none would be crossed. What was just killed may still be writing for a moment.
    local try
    for try in 1 2 3 4 5 6 7 8 9 10; do
      rm -rf --one-file-system "$directory" 2>/dev/null && break
      ((try < 10)) || echo "test-fresh: $directory could not be removed" >&2
      sleep 0.5
    done
  fi
  exec >&- 2>&-
  wait
}

# Where this machine gets the packages of its own distribution from, one line for each suite and component.
apt_sources() {
  local distribution
  # shellcheck source=/dev/null
  distribution=$(. /etc/os-release && echo "${ID^}")
  # shellcheck disable=SC2016 # apt's variables
  apt-get indextargets --format '$(ORIGIN)|deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
    sed -n "s/^$distribution|//p" | sort -u
}

# How this machine's apt reaches its sources.
apt_settings() { apt-config dump | grep -E '^Acquire::(.*[Pp]roxy|.*::Verify-|.*::CaInfo|Check-|Retries|.*::Timeout)' || true; }

make_system() {
  local release sources=$directory/sources.list settings=$directory/apt.conf
  # shellcheck source=/dev/null
  release=$(. /etc/os-release && echo "$VERSION_CODENAME")
  apt_sources >"$sources"
  [[ -s $sources ]] || fail 'apt has no lists that say where this distribution comes from: apt-get update'
  apt_settings >"$settings"
  echo "making a minimal $release in $system"
  local bootstrap=$directory/bootstrap.log
  if has mmdebstrap; then
    logged "$bootstrap" mmdebstrap --quiet --mode=root --variant=minbase --include="$PACKAGES" --aptopt="$settings" \
      "$release" "$system" "$sources" || fail "mmdebstrap failed: $(tail -n 15 "$bootstrap")"
  else
    local mirror
    mirror=$(awk -v release="$release" '$3 == release { print $2; exit }' "$sources")
    logged "$bootstrap" debootstrap --variant=minbase --include="$PACKAGES" "$release" "$system" "$mirror" ||
      fail "debootstrap failed: $(tail -n 15 "$bootstrap")"
    rm -rf "$system"/var/cache/apt/archives/*.deb "$system"/var/lib/apt/lists/*
    cp "$settings" "$system/etc/apt/apt.conf.d/99test-fresh"
    cp "$sources" "$system/etc/apt/sources.list"
  fi
}

# What gives this machine's network to the new one: names, certificates, and where registries are.
copy_network() {
  local file
  cp -L /etc/resolv.conf "$system/etc/resolv.conf"
  { printf '127.0.0.1 localhost fresh\n::1 localhost\n' && grep -vE '^(127\.|::1|#|$)' /etc/hosts; } >"$system/etc/hosts" || true
  echo fresh >"$system/etc/hostname"
  mkdir -p "$system/usr/local/share/ca-certificates" "$system/etc/ssl/certs"
  cp -a /usr/local/share/ca-certificates/. "$system/usr/local/share/ca-certificates/" 2>/dev/null || true
  cp -a /etc/ssl/certs/. "$system/etc/ssl/certs/"
  for file in /etc/pip.conf "$HOME/.config/pip/pip.conf" "$HOME/.pip/pip.conf"; do
    [[ -f $file ]] || continue
    local target=$system/${file/#"$HOME/"/$NEW_HOME/}
    mkdir -p "$(dirname "$target")"
    cp -L "$file" "$target"
  done
}

# Rust as rustup's installer leaves it: the proxies, and no toolchain but the pinned one. That is a copy, and in one file system with the
# rest of rustup's: rustup moves files between them when it adds to a toolchain.
copy_rust() {
  local rustup toolchain cargo=$system$NEW_HOME/.cargo name
  toolchain=$(find_toolchain)
  rustup=$(readlink -f "$(command -v rustup)")
  mkdir -p "$cargo/bin" "$system$NEW_HOME/.rustup/toolchains"
  cp "$rustup" "$cargo/bin/rustup"
  for name in cargo cargo-clippy cargo-fmt clippy-driver rustc rustdoc rustfmt; do ln -s rustup "$cargo/bin/$name"; done
  if [[ -n $toolchain ]]; then
    name=${toolchain##*/}
    printf 'version = "12"\nprofile = "minimal"\ndefault_toolchain = "%s"\n\n[overrides]\n' "$name" >"$system$NEW_HOME/.rustup/settings.toml"
    mkdir "$system$NEW_HOME/.rustup/toolchains/$name"
    tar --create --directory "$(readlink -f "$toolchain")" --exclude=./share/doc . |
      tar --extract --directory "$system$NEW_HOME/.rustup/toolchains/$name"
  fi
  # Of cargo's configuration only what says where crates come from.
  local file
  for file in "${CARGO_HOME:-$HOME/.cargo}"/config{.toml,}; do
    [[ -f $file ]] || continue
    awk '/^\[/ { keep = /^\[\[?(source|registries|registry|http|net)[].]/ } keep' "$file" >"$cargo/config.toml"
    break
  done
}

copy_checkout() {
  git clone --quiet --no-hardlinks "$source" "$system$CHECKOUT"
  ((working_tree)) || return 0
  cd "$source"
  git diff --binary HEAD | git -C "$system$CHECKOUT" apply --allow-empty
  git ls-files --others --exclude-standard -z | tar --create --null --files-from=- | tar --extract --directory "$system$CHECKOUT"
  cd - >/dev/null
}

# The environment's part of where registries are. Tokens stay here.
registries() {
  local name
  for name in $(compgen -e); do
    case $name in
      *TOKEN* | *PASSWORD*) ;;
      *_proxy | *_PROXY | PIP_* | SSL_CERT_* | *_CA_BUNDLE | *_CAINFO | GOFLAGS | RUSTUP_DIST_SERVER | RUSTUP_UPDATE_ROOT | \
        CARGO_HTTP_* | CARGO_NET_* | CARGO_SOURCE_* | CARGO_REGISTR*) variables+=("$name=${!name}") ;;
    esac
  done
  for name in GOPROXY GOSUMDB GONOSUMDB GONOPROXY GOPRIVATE GOINSECURE; do
    [[ -z $(go env "$name") ]] || variables+=("$name=$(go env "$name")")
  done
}

# The pinned toolchain of this machine, by the name that rustup gives it; nothing where the new machine has to download it.
find_toolchain() {
  local channel folder
  channel=$(sed -n 's/^channel *= *"\(.*\)"/\1/p' "$source/rust-toolchain.toml")
  for folder in "${RUSTUP_HOME:-$HOME/.rustup}/toolchains/$channel-$(uname -m)"-*; do
    if [[ -x $folder/bin/rustc ]]; then
      echo "$folder"
      return
    fi
  done
}

outside() {
  ((EUID == 0)) || fail 'it needs root: it makes a system and mounts'
  has mmdebstrap || has debootstrap || fail 'it needs mmdebstrap: apt-get install -y mmdebstrap'
  local program
  for program in git go rustup; do has "$program" || fail "it needs $program on the PATH, to take it along"; done
  local new=1
  if [[ -n $directory ]]; then
    directory=$(realpath -m "$directory")
    if [[ -e $directory/complete ]]; then new=0
    elif [[ -e $directory ]] && [[ -n $(ls -A "$directory") ]]; then fail "$directory is not empty"; fi
    mkdir -p "$directory"
  else
    directory=$(mktemp -d /var/tmp/test-fresh.XXXXXX)
  fi
  chmod 755 "$directory" # for apt's own user
  system=$directory/system
  log=$directory.$(date +%Y%m%d-%H%M%S).log
  trap cleanup EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  exec > >(trap '' INT TERM HUP; exec tee "$log") 2>&1
  echo "log: $log"
  variables=()
  registries
  if ((new)); then
    make_system
    copy_network
    copy_rust
    copy_checkout
    touch "$directory/complete"
  fi
  local status=0
  isolated "$BASH" "$self" --inside "$directory" "$(go env GOROOT)" "${#variables[@]}" "${variables[@]}" "${commands[@]}" ||
    status=$?
  exit "$status"
}

# ---- in the namespaces, as their first process -----------------------------------------------------------------------------------------

bind() { # source, options
  local target=$system$1
  if [[ -d $1 ]]; then mkdir -p "$target"; else mkdir -p "$(dirname "$target")" && touch "$target"; fi
  mount --rbind "$1" "$target"
  [[ -z ${2:-} ]] || mount -o "remount,bind,$2" "$target"
}

mount_system() { # GOROOT
  local node variable value
  mount --bind "$system" "$system"
  mount -t proc proc "$system/proc"
  mount --rbind /sys "$system/sys"
  mount -t tmpfs -o mode=755 tmpfs "$system/run"
  mount -t tmpfs -o mode=755,nosuid tmpfs "$system/dev"
  for node in null zero full random urandom tty; do bind "/dev/$node"; done
  mkdir "$system/dev/pts" "$system/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$system/dev/pts"
  mount -t tmpfs -o mode=1777 tmpfs "$system/dev/shm"
  ln -s pts/ptmx "$system/dev/ptmx"
  ln -s /proc/self/fd "$system/dev/fd"
  for node in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${node%:*}" "$system/dev/${node#*:}"; done
  mkdir -p "$system/usr/local/go"
  mount --bind "$1" "$system/usr/local/go"
  mount -o remount,bind,ro "$system/usr/local/go"
  # Files and folders that the variables speak of.
  for variable in "${variables[@]}"; do
    value=${variable#*=}
    if [[ $value == /* && -e $value && ! -e $system$value ]]; then bind "$value" ro; fi
  done
}

inside() {
  directory=$1 system=$1/system
  local goroot=$2 count=$3 old
  shift 3
  variables=("${@:1:count}")
  commands=("${@:count+1}")
  mount_system "$goroot"
  hostname fresh
  # A changed root forbids user namespaces; a swapped one does not.
  old=$system/.old
  mkdir -p "$old"
  pivot_root "$system" "$old"
  cd /
  umount --lazy /.old
  rmdir /.old
  exec /usr/bin/env -i "${variables[@]}" HOME=$NEW_HOME USER=root LOGNAME=root SHELL=/bin/bash LANG=C.UTF-8 TERM=dumb \
    PATH=$NEW_HOME/.cargo/bin:/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    CHECKOUT="$CHECKOUT" /bin/bash -uo pipefail -c "$(declare -f newcomer prepare stamp packages); newcomer \"\$@\"" newcomer "${commands[@]}"
}

# ---- on the new machine ---------------------------------------------------------------------------------------------------------------

stamp() { while IFS= read -r line || [[ -n $line ]]; do printf '%(%H:%M:%S)T  %s\n' -1 "$line"; done; }

packages() { dpkg-query -W -f '${Package}\n' | sort; }

# Takes out of the toolchain what rustup's installer would not have put there.
prepare() {
  local name=(~/.rustup/toolchains/*)
  [[ -x ${name[0]}/bin/rustc && ! -e ~/.rustup/prepared ]] || return 0
  rustup --quiet target remove --toolchain "${name[0]##*/}" wasm32-unknown-unknown >/dev/null 2>&1
  rustup --quiet component remove --toolchain "${name[0]##*/}" rust-src >/dev/null 2>&1
  touch ~/.rustup/prepared
}

# Runs the commands and sums up.
newcomer() {
  cd "$CHECKOUT" || exit
  unset CHECKOUT
  prepare
  local before command status started failed=0 summary=() said
  said=$(mktemp)
  before=$(packages)
  for command; do
    echo
    echo "==== $(date '+%F %T')  \$ $command"
    started=$SECONDS
    status=0
    bash -c "$command" </dev/null 2>&1 | stamp | tee -a "$said" || status=${PIPESTATUS[0]}
    ((status == 0)) || failed=1
    summary+=("$(printf '%4d min %02d s  exit %-3d  %s' $(((SECONDS - started) / 60)) $(((SECONDS - started) % 60)) "$status" "${command%%$'\n'*}")")
  done
  echo
  echo "==== summary, $(date '+%F %T'), commit $(git log -1 --format=%h)"
  printf '%s\n' "${summary[@]}"
  du -xsh ~/.cache ~/go ~/.cargo target 2>/dev/null | sed 's/^/size  /'
  grep -hE '^[0-9:]+  (installing|rustup could not|fetching the package)' "$said" | sed 's/^[0-9:]* */setup /'
  echo "packages added: $(comm -13 <(echo "$before") <(packages) | wc -l); toolchain: $(rustup target list --installed 2>/dev/null | paste -sd' ')"
  rm -f "$said"
  exit "$failed"
}

# ---------------------------------------------------------------------------------------------------------------------------------------

if [[ ${1:-} == --inside ]]; then
  shift
  inside "$@"
fi

keep=0 working_tree=0 directory='' commands=()
while (($#)); do
  case $1 in
    --keep) keep=1 ;;
    --working-tree) working_tree=1 ;;
    --commands)
      commands+=("${2:?--commands takes a command}")
      shift
      ;;
    -*) fail "usage: $0 [--keep] [--working-tree] [--commands COMMAND]... [DIR]" ;;
    *) directory=$1 ;;
  esac
  shift
done
((${#commands[@]})) || commands=('make demo' 'make test')
outside
