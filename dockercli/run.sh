trap : TERM INT HUP QUIT PIPE ALRM USR1 USR2
n=$1
left() {
  l=
  for d in /proc/[0-9]*; do
    { read -r t <"$d/stat"; } 2>/dev/null || continue
    set -f; set -- ${t##*)}; set +f
    [ "$1" = Z ] || [ "$2" = 0 ] || [ "$d" = /proc/1 ] || { t=${t#*\(}; l="$l ${t%\)*}"; [ ${#l} -lt 200 ] || break; }
  done
}
say() { i=0; until printf '\n%s %s\n' "$n" "$1" || [ $i -gt 19999 ]; do i=$((i+1)); done; }
end() { counts; left; say "end $1 $o $q$l"; say end >&3; }
read -r go || exit 0
m= u=
for d in /sys/fs/cgroup /sys/fs/cgroup/pids; do { read -r m <"$d/pids.max" && read -r u <"$d/pids.current" && break; } 2>/dev/null; done
case $m$u in ''|*[!0-9]*) ;; *) [ $((m-u)) -ge 8 ] || exit 1;; esac
counts; printf '\n%s %s %s\n' "$n" "$o" "$q"; printf '\n%s\n' "$n" >&2
exec 3>&2 2>/dev/null
read -r h && eval "$h" || exit 0
for x in /tmp/.in.* /tmp/.all.*; do if [ -e "$x" ]; then rm -f "$x"; fi; done
if [ -e "$f" ] || [ -L "$f" ]; then rm -rf "$f" || { chmod -R u+rwx "$f"; rm -rf "$f"; }; fi
i=/dev/null a=/tmp/.all.$n
if if [ "$in" = 0 ]; then cat >"$f"; else
  i=/tmp/.in.$n; cat >"$a" && head -c "$c" "$a" >"$f" && tail -c "+$((c+1))" "$a" >"$i" && rm -f "$a"
fi && { [ $((c+in)) -lt 4096 ] || [ "$(cat "$f" "$i" | wc -c)" -eq $((c+in)) ]; }
then (eval "$r") <"$i" 2>&3 3>&-; end $?
else end "!$?"; fi
rm -rf "$f" "$a" "/tmp/.in.$n"
say out
