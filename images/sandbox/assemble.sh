#!/usr/bin/env bash
# Assembles the sandbox's root file system out of Debian packages, without a registry and without root:
#   assemble.sh FOLDER   writes FOLDER/rootfs.tar
# Python's minimal interpreter and standard library, busybox for the shell, and server.py; everything is compiled
# ahead, because a sandbox's start is mostly Python reading its modules.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
work="$(cd "$1" && pwd)"
root="$work/rootfs"

for tool in apt-get apt-cache dpkg-deb tar; do
  command -v "$tool" >/dev/null || { echo "assemble.sh: $tool is not here" >&2; exit 1; }
done

# --- packages -------------------------------------------------------------------------------------------------------
mkdir -p "$work/packages" "$root"
# The release's own Python, by the name that its python3-minimal depends on.
download() {
  python="$(apt-cache depends --important python3-minimal 2>/dev/null | grep -oE 'python3\.[0-9]+' | head -n 1 || true)"
  [ -n "$python" ] || { echo 'assemble.sh: apt knows no python3-minimal' >&2; return 1; }
  local names=("$python-minimal" "lib$python-minimal" "lib$python-stdlib" libc6 zlib1g libexpat1 busybox-static)
  (cd "$work/packages" && apt-get download -qq -o APT::Sandbox::User=root "${names[@]}" >&2)
}
# A fresh machine has no package lists, an old one has stale ones.
download || { [ "$(id -u)" = 0 ] && apt-get update -q >&2 && download; }

# --- files ----------------------------------------------------------------------------------------------------------
# Packages from before and after the merge of /bin into /usr/bin meet in one tree.
mkdir -p "$root"/usr/{bin,sbin,lib,lib64} "$root"/{etc,tmp,home/sandbox,opt/sandbox}
for name in bin sbin lib lib64; do ln -s "usr/$name" "$root/$name"; done
for package in "$work"/packages/*.deb; do
  dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink --no-same-owner -C "$root"
done
rm -rf "$root"/usr/share "$root"/usr/lib/*/gconv "$root"/usr/lib/"$python"/{test,idlelib,lib2to3,ensurepip,pydoc_data,tkinter,turtledemo,turtle.py}
mkdir -p "$root/usr/share"

for applet in $("$root/bin/busybox" --list); do
  [ -e "$root/usr/bin/$applet" ] || ln -s busybox "$root/usr/bin/$applet"
done
ln -s "$python" "$root/usr/bin/python3"
ln -s "$python" "$root/usr/bin/python"

printf 'root:x:0:0:root:/root:/bin/sh\nsandbox:x:1000:1000:sandbox:/home/sandbox:/bin/sh\n' >"$root/etc/passwd"
printf 'root:x:0:\nsandbox:x:1000:\n' >"$root/etc/group"
install -m 0644 "$here/server.py" "$root/opt/sandbox/server.py"

# --- compiled by the very interpreter that will read it -------------------------------------------------------------
loader="$(find "$root"/usr/lib "$root"/usr/lib64 -name 'ld-linux*.so.*' | head -n 1)"
libraries="$(dirname "$(find "$root/usr/lib" -name 'libc.so.6' | head -n 1)")"
run() { PYTHONHOME="$root/usr" "$loader" --library-path "$libraries" "$root/usr/bin/$python" -S "$@"; }
# Extension modules whose libraries are not in this tree could only fail at import.
rm -f "$root/usr/lib/$python"/lib-dynload/{*test*,xx*}
for module in "$root/usr/lib/$python"/lib-dynload/*.so; do
  needs="$("$loader" --library-path "$libraries" --list "$module" 2>&1 || true)"
  if grep -E 'not found|=> /' <<<"$needs" | grep -qvF "=> $root/"; then rm "$module"; fi
done
run -m compileall -q -j 0 -s "$root" -p / --invalidation-mode unchecked-hash "$root/usr/lib/$python" >&2
run -c "import py_compile, sys
py_compile.compile(sys.argv[1] + '/server.py', sys.argv[1] + '/server.pyc', '/opt/sandbox/server.py', doraise=True,
                   invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)" "$root/opt/sandbox"

# --- one archive ----------------------------------------------------------------------------------------------------
chmod 1777 "$root/tmp"
chmod 0755 "$root/home/sandbox"
common=(--sort=name --mtime=@0 --numeric-owner -C "$root")
tar -cf "$work/rootfs.tar" "${common[@]}" --owner=0 --group=0 --exclude=./home/sandbox .
tar -rf "$work/rootfs.tar" "${common[@]}" --owner=1000 --group=1000 ./home/sandbox
rm -rf "$root" "$work/packages"
