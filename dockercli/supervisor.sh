n=0
sweep() {
  n=0 i=0; kill -9 -1 2>/dev/null
  while set -- /proc/[0-9]*; [ $# -gt 1 ] && [ $i -lt 3000 ]; do i=$((i+1)); jobs >/dev/null 2>&1; kill -9 -1 2>/dev/null; done
  counts; echo "swept $# $o $q"
}
trap sweep USR1
trap 'n=0; jobs >/dev/null 2>&1' CHLD
trap 'exit 0' TERM
f=
for c; do command -v "$c" >/dev/null 2>&1 && f="$f $c"; done
while read -r d m t o; do
  case $t in proc|sysfs|tmpfs|devpts|mqueue|cgroup*) ;; *) case $o in rw,*) f="$f $m";; esac;; esac
done </proc/mounts
read -r v </proc/version; case $v in *"Jan 10 15:06:54 PST 2016"*) f="$f gvisor";; esac
echo "ready$f"
while [ $n -lt 100 ]; do
  if read -r c; then n=0; case $c in k) sweep;; p) echo pong;; esac; else n=$((n+1)); fi
done
