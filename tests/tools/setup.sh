#!/usr/bin/env bash
# Finds what this machine lacks for the build, the demo and the tests, all of it at once and before anything is compiled, and installs it
# where it may: as root on Debian and Ubuntu, or when asked to (`make setup`).
#
# It never removes anything of the user's, never changes a setting of the kernel, and installs nothing but packages of the distribution and parts of
# Rust by rustup.
#
#   setup.sh [check] [build]   says nothing when all is there; `build` looks only at what compiling takes
#   setup.sh install           installs what is missing, with sudo when it has to
#   setup.sh doctor            tells everything that is needed, there or not; changes nothing
#
# SETUP_SKIP="disk memory" leaves items out, for those who know better.
set -euo pipefail

readonly GO=1.26.5        # oldest that builds the programs
readonly PYTHON=3.11      # oldest that the AWS emulator runs on
readonly TARGET_GB=10     # what is compiled
readonly CACHE_GB=15      # $HOME/.cache and Go's modules: programs of the bed, and what building them leaves
readonly MEMORY_GB=8      # swap included
readonly WASM=wasm32-unknown-unknown
readonly TARGET_SECONDS=120 TOOLCHAIN_SECONDS=600 # how long rustup may take

# Everything that is needed. Packages are joined by commas; a dash means that there is none.
# item       for   Debian           Fedora           Arch             why
# shellcheck disable=SC2016 # backquotes are text here
readonly NEEDED='
cc           build build-essential  gcc,binutils,glibc-devel base-devel compiles the C inside some crates, and links
make         build make             make             make             runs the commands of the README
certificates build ca-certificates  ca-certificates  ca-certificates  is what downloads of cargo, Go and pip are trusted by
rust         build -                -                -                compiles the operator and the bed
wasm         build rustc-web,cargo-web,rust-web-src,lld rust-std-static-wasm32-unknown-unknown,lld rust-wasm,lld compiles the built-in plugins to WebAssembly
clippy       bed   -                -                -                is what `make test` looks at the code with, beside rustfmt
go           bed   -                -                -                builds etcd, Kubernetes and Cluster API from source
python       bed   python3          python3          python           runs the AWS emulator, and cloud-init on the machines of the bed
venv         bed   python3-venv     python3          python           keeps the Python packages of the AWS emulator apart
ip           bed   iproute2         iproute          iproute2         connects the machines of the bed
nft          bed   nftables         nftables         nftables         is the security groups of the machines
unshare      bed   util-linux       util-linux       util-linux       makes the namespaces that the bed and its machines are
nsenter      bed   util-linux       util-linux-core  util-linux       runs programs inside of them
setsid       bed   util-linux       util-linux-core  util-linux       keeps the bed running when a terminal closes
mount        bed   mount            util-linux-core  util-linux       gives the bed its own files below /run and /etc
sysctl       bed   procps           procps-ng        procps-ng        lets the bed route between its machines
apt-get      bed   apt              -                -                downloads cloud-init and a registry as Debian and Ubuntu package them
apt-cache    bed   apt              -                -                knows what cloud-init consists of
dpkg-deb     bed   dpkg             -                -                unpacks both
lists        bed   -                -                -                are where apt looks for both
namespaces   bed   -                -                -                are what the bed and its machines are made of
network      bed   -                -                -                is what the machines of the bed talk over
disk         build -                -                -                holds what is compiled and downloaded
memory       build -                -                -                is used by compilers and by the clusters of the bed
'

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
readonly root
cd "$root"
# Debian keeps some of the programs out of an ordinary user's PATH.
PATH=$PATH:/usr/sbin:/sbin
HOME=${HOME:-/root}
channel=$(sed -n 's/^channel *= *"\(.*\)"/\1/p' rust-toolchain.toml)
readonly channel toolchain=${RUSTUP_TOOLCHAIN:-$channel} cache=$HOME/.cache/cluster-operator

# ---- looking --------------------------------------------------------------------------------------------------------------------------

# A check answers 0 and says in `found` what is there, 1 and says in `problem` and `fix` what a person has to know, or 2 when something
# else has to be there first.
found='' problem='' fix=''
missing=() # items
declare -A problems fixes

has() { command -v "$1" >/dev/null; }
at_least() { printf '%s\n' "$2" "$1" | sort --version-sort --check=quiet; } # version, least version
field() { awk -v item="$1" -v column="$2" '$1 == item { print $column }' <<<"$NEEDED"; }
why() { awk -v item="$1" '$1 == item { for (i = 6; i <= NF; i++) printf "%s%s", $i, i < NF ? " " : "" }' <<<"$NEEDED"; }

check_cc() {
  has cc && has ld || return 1
  local start
  start=$(cc -print-file-name=crt1.o)
  if [[ $start != */* ]]; then
    problem='cc is there, the headers and start files of the C library are not'
    return 1
  fi
  found=$(command -v cc)
}

check_certificates() {
  local file
  for file in "${SSL_CERT_FILE:-}" /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem; do
    if [[ -s $file ]]; then
      found=$file
      return
    fi
  done
  return 1
}

# Whether the cargo that is called is rustup's, which picks the toolchain and might download it.
by_rustup() {
  has rustup && has cargo || return 1
  local cargo
  cargo=$(command -v cargo)
  [[ $cargo -ef $(command -v rustup) || $(readlink -f "$cargo") == */rustup ]]
}

# The folder of the Rust at work. Of rustup it is found without a call: a call might download.
sysroot() {
  if ! by_rustup; then
    rustc --print sysroot 2>/dev/null
    return
  fi
  local folder toolchains=${RUSTUP_HOME:-$HOME/.rustup}/toolchains
  for folder in "$toolchains/$toolchain" "$toolchains/$toolchain-$(uname -m)"-*; do
    if [[ -x $folder/bin/cargo && -x $folder/bin/rustc ]]; then
      echo "$folder"
      return
    fi
  done
  return 1
}

check_rust() {
  local folder
  if by_rustup; then
    if ! folder=$(sysroot); then
      problem="rustup is there, its toolchain $toolchain is not yet"
      return 1
    fi
    found="$toolchain by rustup"
  elif has cargo && has rustc; then
    found=$(cargo --version | cut -d' ' -f2)
    at_least "$found" "$channel" && return
    problem="it takes $channel or newer and there is $found"
    fix='install Rust by rustup: https://rustup.rs'
    return 1
  elif [[ -x ${CARGO_HOME:-$HOME/.cargo}/bin/cargo ]]; then
    problem='it is installed, this shell does not know it yet'
    fix=". ${CARGO_HOME:-$HOME/.cargo}/env"
    return 1
  else
    fix="curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh (it is https://rustup.rs)"
    return 1
  fi
}

check_clippy() {
  local folder
  if by_rustup; then
    folder=$(sysroot) || return 2
    [[ -x $folder/bin/cargo-clippy && -x $folder/bin/cargo-fmt && -x $folder/bin/rustfmt ]] && found=$toolchain
    return
  fi
  has cargo || return 2
  if has cargo-clippy && has cargo-fmt && has rustfmt; then
    found=$(command -v cargo-clippy)
    return
  fi
  fix='install Rust by rustup (https://rustup.rs), which brings clippy and rustfmt'
  return 1
}

# As host/plugin/build.rs looks for it: the standard library itself, or its source.
check_wasm() {
  local folder rustlib
  for folder in "$(sysroot || true)" "$([[ -x /usr/bin/cargo && -x /usr/bin/rustc ]] && echo /usr)"; do
    rustlib=$folder/lib/rustlib
    [[ -n $folder ]] || continue
    compgen -G "$rustlib/$WASM/lib/libcore-*.rlib" >/dev/null || [[ -f $rustlib/src/rust/library/std/Cargo.toml ]] || continue
    if compgen -G "$rustlib/*/bin/rust-lld" >/dev/null || has wasm-ld; then
      found="of $folder"
      return
    fi
  done
  return 1
}

check_go() {
  if has go; then
    # Local: it must not go and get the version that a module asks for.
    found=$(GOTOOLCHAIN=local go version | sed -E 's/.*go([0-9.]+).*/\1/')
    at_least "$found" "$GO" && return
    problem="it takes Go $GO or newer and there is $found"
  elif [[ -x /usr/local/go/bin/go ]]; then
    problem='it is installed, this shell does not know it yet'
    # shellcheck disable=SC2016 # for the reader's shell
    fix='export PATH=$PATH:/usr/local/go/bin'
    return 1
  fi
  fix="install Go $GO or newer: https://go.dev/dl/ (unpack it into /usr/local, and put /usr/local/go/bin on the PATH)"
  return 1
}

# The Python that is used: the system's own where possible, since machines of the bed see only /usr. Prints version and "True" with venv.
python() {
  local program answer
  for program in /usr/bin/python3 python3; do
    answer=$("$program" -c 'import sys; from importlib.util import find_spec as f
print("%d.%d.%d" % sys.version_info[:3], bool(f("venv") and f("ensurepip")))' 2>/dev/null) || continue
    if at_least "${answer% *}" "$PYTHON"; then
      echo "$answer"
      return
    fi
  done
  return 1
}

check_python() {
  [[ -x /usr/bin/python3 ]] || return 1
  if found=$(python); then
    found=${found% *}
    return
  fi
  problem="it takes Python $PYTHON or newer and there is $(/usr/bin/python3 --version)"
  fix='use a newer release: Debian 12, Ubuntu 24.04'
  return 1
}

check_venv() {
  found=$(python) && [[ $found == *True ]] && found=${found% *}
}

check_lists() {
  has apt-get || return 2
  if compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null ||
    { compgen -G "$cache/cloud-init/*/usr/bin/cloud-init" && compgen -G "$cache/registries/*/docker-registry"; } >/dev/null; then
    found=/var/lib/apt/lists
    return
  fi
  problem='apt has not got any package lists yet'
  return 1
}

# As the bed makes them: in a user namespace, or as root where those are forbidden.
isolated() {
  local common=(--net --mount --pid --fork --mount-proc) user=()
  if unshare --user --map-root-user "${common[@]}" true 2>/dev/null; then
    user=(--user --map-root-user)
  elif ((EUID)); then
    return 1
  fi
  unshare "${user[@]}" "${common[@]}" "$@" 2>&1
}

check_namespaces() {
  has unshare || return 2
  isolated true >/dev/null && return
  problem='this kernel lets us make none'
  fix='run it on a machine of your own; in a container, give that the rights (for Docker: --privileged)'
  forbids /proc/sys/kernel/unprivileged_userns_clone 0 kernel.unprivileged_userns_clone=1
  forbids /proc/sys/kernel/apparmor_restrict_unprivileged_userns 1 kernel.apparmor_restrict_unprivileged_userns=0
  forbids /proc/sys/user/max_user_namespaces 0 user.max_user_namespaces=15000
  return 1
}

forbids() { # file, forbidding value, what allows them
  if [[ -r $1 && $(<"$1") == "$2" ]]; then
    problem='they are forbidden here'
    fix="allow them: sudo sysctl -w $3"
  fi
}

check_network() {
  local program
  for program in unshare ip nft sysctl mount; do has "$program" || return 2; done
  isolated true >/dev/null || return 2
  local script='set -e
    ip link add name bed type bridge
    ip link add name bed0 type veth peer name bed1
    nft "add table inet bed; add chain inet bed in { type filter hook input priority 0; }; add rule inet bed in ct state related accept"
    sysctl -q -w net.ipv4.ip_forward=1
    mount -t tmpfs tmpfs /run'
  problem=$(isolated sh -c "$script") && return
  problem=${problem//$'\n'/; }
  fix='load what the kernel lacks: sudo modprobe -a bridge veth nf_tables nf_conntrack'
  return 1
}

# The folder, or what is there already of the way to it.
existing() {
  local folder=$1
  until [[ -d $folder ]]; do folder=$(dirname "$folder"); done
  echo "$folder"
}

check_disk() {
  local -A needed=() free=()
  local available place
  need() { # folder, GB
    read -r available place < <(df -Pk "$(existing "$1")" | awk 'NR == 2 { print int($4 / 1000000), $6 }')
    needed[$place]=$((${needed[$place]:-0} + $2)) free[$place]=$available
  }
  local target=${CARGO_TARGET_DIR:-$root/target}
  compgen -G "$target/*/sandbox" >/dev/null || need "$target" "$TARGET_GB"
  compgen -G "$cache/tools/*/bin/kubectl" >/dev/null || need "$cache" "$CACHE_GB"
  found='built already'
  for place in "${!needed[@]}"; do
    found="${free[$place]} GB free on $place"
    ((free[$place] >= needed[$place])) && continue
    problem="it takes about ${needed[$place]} GB and $place has ${free[$place]} GB free"
    fix="make room on $place, or put what is compiled elsewhere: CARGO_TARGET_DIR"
    return 1
  done
}

check_memory() {
  local total limit
  total=$(awk '/^(MemTotal|SwapTotal):/ { sum += $2 } END { print int(sum / 1000) }' /proc/meminfo)
  if [[ -r /sys/fs/cgroup/memory.max ]]; then
    limit=$(</sys/fs/cgroup/memory.max)
    if [[ $limit != max ]] && ((limit / 1000000 < total)); then total=$((limit / 1000000)); fi
  fi
  found="$((total / 1000)) GB"
  # A machine sold with as much as is needed shows a little less.
  ((total >= MEMORY_GB * 940)) && return
  problem="it takes $MEMORY_GB GB and there are $((total / 1000))"
  fix='give the machine more memory, or swap'
  return 1
}

# Looks at one item.
look() {
  local name=check_${1//-/_}
  found='' problem='' fix=''
  if [[ " ${SETUP_SKIP:-} " == *" $1 "* ]]; then
    found='not looked at: SETUP_SKIP'
  elif declare -F "$name" >/dev/null; then
    "$name"
  else
    found=$(command -v "$1")
  fi
}

# Looks at all items of a group; fills `missing`.
look_at_all() { # group, "" for all
  local item status
  missing=()
  while read -r item group _; do
    [[ -n $item && (-z $1 || $group == "$1") ]] || continue
    status=0
    look "$item" || status=$?
    ((status == 1)) || continue
    missing+=("$item")
    problems[$item]=$problem fixes[$item]=$fix
  done <<<"$NEEDED"
}

# ---- what to do about it --------------------------------------------------------------------------------------------------------------

packages=()      # of the distribution
rustup=()        # what rustup is to be called with
wasm_packages=() # in place of rustup's target, where rustup cannot download it
lists=0          # whether apt needs its lists
left=()          # items that only a person can provide

system() {
  if [[ -e /etc/debian_version ]] && has apt-get; then echo debian
  elif has dnf; then echo fedora
  elif has pacman; then echo arch
  else echo other; fi
}

packages_of() { # item
  local column
  case $(system) in debian) column=3 ;; fedora) column=4 ;; arch) column=5 ;; *) return ;; esac
  field "$1" "$column" | grep -vx -- - | tr ',' '\n' || true
}

# Whether the distribution's own Rust for WebAssembly can be had and is new enough. Without lists only Debian is known to have it.
packaged_wasm() {
  [[ $(system) == debian ]] || { [[ -n $(packages_of wasm) ]]; return; }
  local candidate
  if ! compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null; then
    grep -qx 'ID=debian' /etc/os-release
    return
  fi
  candidate=$(apt-cache policy rustc-web | sed -n 's/^  Candidate: \([0-9.]*\).*/\1/p')
  [[ -n $candidate ]] && at_least "$candidate" "$channel"
}

add_packages() {
  local package
  for package; do [[ " ${packages[*]} " == *" $package "* ]] || packages+=("$package"); done
}

is_missing() { [[ " ${missing[*]} " == *" $1 "* ]]; }

decide() {
  packages=() rustup=() wasm_packages=() lists=0 left=()
  local item names
  for item in "${missing[@]}"; do
    mapfile -t names < <(packages_of "$item")
    if [[ $item == lists && $(system) == debian ]]; then lists=1
    elif [[ $item == wasm ]]; then decide_wasm "${names[@]}"
    elif [[ -n ${fixes[$item]} ]]; then left+=("$item")
    elif [[ $item == rust || $item == clippy ]]; then :
    elif ((${#names[@]})); then add_packages "${names[@]}"
    else left+=("$item"); fi
  done
  if ! by_rustup; then return; fi
  if is_missing rust; then rustup=(toolchain install "$toolchain" --profile minimal --component clippy --component rustfmt --target "$WASM")
  elif is_missing clippy && is_missing wasm; then rustup=(toolchain install "$toolchain" --component clippy --component rustfmt --target "$WASM")
  elif is_missing clippy; then rustup=(component add --toolchain "$toolchain" clippy rustfmt)
  elif is_missing wasm; then rustup=(target add --toolchain "$toolchain" "$WASM"); fi
}

decide_wasm() { # packages
  if by_rustup; then
    if packaged_wasm && [[ $(system) == debian ]]; then wasm_packages=("$@"); fi
  elif has cargo && packaged_wasm; then
    add_packages "$@"
  else
    fixes[wasm]="once Rust is there by rustup: rustup target add $WASM"
    left+=(wasm)
  fi
}

# The one line that installs everything.
line() {
  local sudo='sudo ' parts=() part
  ((EUID)) || sudo=''
  case $(system) in
    debian)
      ((${#packages[@]} + lists)) && parts+=("${sudo}apt-get update")
      ((${#packages[@]})) && parts+=("${sudo}apt-get install -y ${packages[*]}")
      ;;
    fedora) ((${#packages[@]})) && parts+=("${sudo}dnf install -y ${packages[*]}") ;;
    arch) ((${#packages[@]})) && parts+=("${sudo}pacman -S --needed ${packages[*]}") ;;
  esac
  if ((${#rustup[@]})); then
    part="rustup ${rustup[*]}"
    # Either is enough; the second is for where rustup's server is out of reach.
    if ((${#wasm_packages[@]})) && [[ ${rustup[0]} == target ]]; then
      part="{ $part || ${sudo}apt-get install -y ${wasm_packages[*]}; }"
    fi
    parts+=("$part")
  fi
  ((${#parts[@]})) || return 0
  printf '%s' "${parts[0]}"
  ((${#parts[@]} == 1)) || printf ' && %s' "${parts[@]:1}"
  printf '\n'
}

tell() { # items
  local item
  for item; do
    printf '  %-13s %s\n' "$item" "$(why "$item")"
    [[ -z ${problems[$item]} ]] || printf '  %-13s   %s\n' '' "${problems[$item]}"
    if [[ -n ${fixes[$item]} ]]; then
      printf '  %-13s   -> %s\n' '' "${fixes[$item]}"
    elif [[ " ${left[*]} " == *" $item "* ]]; then
      printf '  %-13s   -> it is part of Debian and Ubuntu; run this on one of them, or in a container or virtual machine of one\n' ''
    fi
  done
}

tell_all() {
  local text which='This line installs it'
  # shellcheck disable=SC2016 # backquotes are text here
  local also=', and `make setup` does the same'
  decide
  ((${#left[@]} == 0)) || which='This line installs what is not marked with "->"'
  echo "This machine lacks what cluster-operator needs:"
  echo
  tell "${missing[@]}"
  text=$(line)
  [[ -n $text ]] || return 0
  echo
  [[ $(system) == debian || ${#packages[@]} == 0 ]] || also=''
  echo "$which$also:"
  echo
  echo "    $text"
}

# ---- installing -----------------------------------------------------------------------------------------------------------------------

as_root() { if ((EUID)); then sudo "$@"; else "$@"; fi; }

log=''

# Runs a command with its output in a log. Answers with its status.
quietly() {
  [[ -n $log ]] || log=$(mktemp --tmpdir cluster-operator-setup.XXXXXX.log)
  echo "\$ $*" >>"$log"
  "$@" >>"$log" 2>&1 </dev/null
}

apt_install() { # packages
  local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300)
  quietly as_root "${apt[@]}" install -y --no-install-recommends "$@" && return
  echo "installing $* failed; the end of $log:" >&2
  tail -n 15 "$log" >&2
  return 1
}

# What of the missing items packages are for.
needed_for() { # packages
  local item package names=()
  for item in "${missing[@]}"; do
    for package in $(packages_of "$item"); do
      [[ " $* " == *" $package "* && " ${names[*]} " != *" $item "* ]] && names+=("$item")
    done
  done
  echo "needed for: ${names[*]}"
}

install_packages() {
  ((${#packages[@]} + lists)) || return 0
  if ((${#packages[@]})); then
    echo "installing ${packages[*]} ($(needed_for "${packages[@]}"))"
  else
    echo 'fetching the package lists of apt (needed for: cloud-init, a registry)'
  fi
  # Some source of packages that is of no use here may be broken.
  quietly as_root apt-get update || echo 'apt-get update reports errors, which may be of no importance here' >>"$log"
  ((${#packages[@]} == 0)) || apt_install "${packages[@]}"
}

install_rust() {
  ((${#rustup[@]})) || return 0
  local seconds=$TOOLCHAIN_SECONDS
  [[ ${rustup[0]} != target ]] || seconds=$TARGET_SECONDS
  local item names=()
  for item in rust clippy wasm; do ! is_missing "$item" || names+=("$item"); done
  echo "installing parts of Rust: rustup ${rustup[*]} (needed for: ${names[*]})"
  quietly timeout "$seconds" rustup "${rustup[@]}" && return
  if [[ ${rustup[0]} == target ]] && packaged_wasm && [[ $(system) == debian ]]; then
    mapfile -t wasm_packages < <(packages_of wasm)
    echo "rustup could not; installing ${wasm_packages[*]} (needed for: wasm)"
    # On a machine that needed no other package the lists may be old.
    ((${#packages[@]} + lists)) || quietly as_root apt-get update || true
    apt_install "${wasm_packages[@]}"
    return
  fi
  echo "rustup failed; the end of $log:" >&2
  tail -n 15 "$log" >&2
  return 1
}

install() { # group
  decide
  if ((EUID && ${#packages[@]} + lists)) && ! has sudo; then
    tell_all
    echo 'There is no sudo here: run it as root, without sudo.'
    return 1
  fi >&2
  if ((${#left[@]})); then
    echo 'This has to be done by hand:'
    echo
    tell "${left[@]}"
    echo
  fi >&2
  local ok=1
  if [[ $(system) == debian ]]; then install_packages || ok=0; fi
  install_rust || ok=0
  hash -r
  look_at_all "$1"
  if ((${#missing[@]})); then
    # What has to be done by hand has just been said.
    if ((ok)) && [[ "${missing[*]}" == "${left[*]}" ]]; then
      echo "still missing: ${missing[*]}"
    else
      tell_all
    fi >&2
    return 1
  fi
  [[ -z $log ]] || rm -f "$log"
  echo 'everything is there now'
}

# ---- commands -------------------------------------------------------------------------------------------------------------------------

check() { # group
  look_at_all "$1"
  ((${#missing[@]})) || return 0
  if ((EUID == 0)) && [[ $(system) == debian ]]; then
    install "$1"
  else
    tell_all >&2
    return 1
  fi
}

setup() {
  look_at_all ''
  if ((${#missing[@]})); then install ''; else echo 'nothing is missing'; fi
}

# First line of what a program says about its version; nothing where it says nothing.
version() {
  local text
  has "$1" || return 0
  text=$(timeout 2 "$1" --version 2>/dev/null </dev/null) || text=$(timeout 2 "$1" -V 2>/dev/null </dev/null) || true
  echo "${text%%$'\n'*}"
}

doctor() {
  local item status text
  while read -r item _; do
    [[ -n $item ]] || continue
    status=0
    look "$item" || status=$?
    case $status in
      0)
        if ! declare -F "check_${item//-/_}" >/dev/null || [[ $item == cc ]]; then text=$(version "$item"); else text=''; fi
        printf 'ok       %-13s %s\n' "$item" "${text:-${found:-yes}}"
        ;;
      2) printf 'unknown  %-13s %s; it can be looked at when the rest is there\n' "$item" "$(why "$item")" ;;
      *) printf 'missing  %-13s %s%s\n' "$item" "$(why "$item")" "${problem:+: $problem}" ;;
    esac
  done <<<"$NEEDED"
  look_at_all ''
  ((${#missing[@]})) || return 0
  echo
  tell_all
  return 1
}

if [[ $(uname -s) != Linux ]]; then
  echo 'cluster-operator is built and tested on Linux: its bed consists of namespaces. Use Debian or Ubuntu, in a virtual machine maybe.' >&2
  exit 1
fi
[[ ${1:-} != check ]] || shift
case ${1:-} in
  '') check '' ;;
  build) check build ;;
  install) setup ;;
  doctor) doctor ;;
  *)
    echo "usage: $0 [check] [build] | install | doctor" >&2
    exit 2
    ;;
esac
